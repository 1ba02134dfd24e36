"""A built page as a test sees it: the places in it, and what it links to."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


@dataclass
class Page:
    """One page: its path in the site, the ids in it, and its links as (tag, address)."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self, page: Page):
        super().__init__()
        self.page = page

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.page.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if attributes.get(LINKS.get(tag)):
            self.page.links.append((tag, attributes[LINKS[tag]]))

    def handle_data(self, data):
        self.page.text += data


def read(folder: Path) -> dict[Path, Page]:
    """Read all pages of the site in ``folder``."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = Page(path)
        _Reader(pages[path]).feed(path.read_text(encoding="utf-8"))
    return pages


def broken(pages: dict[Path, Page]) -> list[str]:
    """Return every link within the site that leads to no file, or to no place in its page."""
    found = []
    for page in pages.values():
        for _, address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].ids):
                found.append(f"{page.path.name}: {address}")
    return found


def foreign(pages: dict[Path, Page]) -> list[str]:
    """Return what a page would load from another host. A link that a reader may follow loads nothing."""
    return [
        f"{page.path.name}: {address}"
        for page in pages.values()
        for tag, address in page.links
        if tag != "a" and (urlsplit(address).netloc or urlsplit(address).scheme not in ("", "data"))
    ]
