// A page that was opened from disk may not read other pages, so results of a search are told by their titles.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
