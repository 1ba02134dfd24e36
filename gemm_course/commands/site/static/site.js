// A page that was opened from disk may not read other pages, so results of a search are told by their titles.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A formula that is wider than a phone can be scrolled with the keyboard too.
for (const formula of document.querySelectorAll(".course-formula"))
  if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
