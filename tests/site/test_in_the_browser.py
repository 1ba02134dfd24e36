"""The course's own site in Chromium, from disk and from a server: it asks no other host, all can use it."""

import contextlib
import functools
import http.server
import threading

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat import v4
from playwright.sync_api import TimeoutError, sync_playwright

from gemm_course import road
from gemm_course import widgets as see
from gemm_course.commands.site.build import build
from gemm_course.compiler import recorded
from tests.notebooks.builder import builder
from tests.site import small_course

pytestmark = [
    pytest.mark.browser,
    pytest.mark.full(reason="builds the whole site and opens every page"),
    pytest.mark.filterwarnings("ignore:.* is deprecated"),
]
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
OF_THE_PAGE = ("file:", "data:", "blob:")
PATIENCE = 1000  # milliseconds until another control is tried; nothing is judged by it
GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def chrome(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


@contextlib.contextmanager
def a_page(browser, own=OF_THE_PAGE, **options):
    """A page and the list of what goes wrong in it: errors, and requests that do not begin as ``own``."""
    context, wrong = browser.new_context(**options), []
    page = context.new_page()
    page.on("request", lambda request: request.url.startswith(own) or wrong.append(f"asks {request.url}"))
    page.on("requestfailed", lambda request: _left(request) or wrong.append(f"does not get {request.url}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    yield page, wrong
    context.close()


def _left(request) -> bool:
    """Is nobody waiting for it any more, because the page was left?"""
    return request.failure == "net::ERR_ABORTED"


def grave(page, *, code: bool) -> list[str]:
    """What axe-core finds on the page that keeps somebody from using it.

    Code that the theme colours is half of all elements, and of the same colours on every page: it is looked
    at if ``code``.
    """
    options = {"resultTypes": ["violations"], "preload": False}
    left_out = None if code else {"exclude": [[".highlight"]]}
    found = Axe().run(page, context=left_out, options=options).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['html'][:120]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("viewport", "theme"), [(LAPTOP, "light"), (PHONE, "dark")])
def test_every_page_is_whole_and_everybody_can_use_it(course_site, chrome, viewport, theme, sample):
    """With --all half of the pages in light, and a quarter of them in the dark, which has the same parts."""
    pages = sorted(course_site.rglob("*.html"))
    with a_page(chrome, viewport=viewport, color_scheme=theme) as (page, wrong):
        for path in sample(pages, one_in=4, with_all=2 if theme == "light" else 4):
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.dataset.theme") == theme
            page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            found = grave(page, code=path.name.startswith("01"))
            assert (path.name, wrong, found, max(wide, 0)) == (path.name, [], [], 0)


def test_every_explorer_moves_or_says_why_not(course_site, chrome):
    moved, told = 0, []
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        for path in sorted(course_site.glob("notebooks/[0-9]*.html")):
            page.goto(path.as_uri())
            page.wait_for_function("document.querySelectorAll('[data-gemm-explorer]').length === 0")
            page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            for explorer in page.locator(".gemm-explorer").all():
                words = _moved(page, explorer)
                moved += words == ""
                told += [words] if words else []
        assert moved >= 40 and wrong == []
        assert [
            words for words in told if "not among the stored" not in words and "the cell defines" not in words
        ] == []


def _moved(page, explorer) -> str:
    """Move controls with the keyboard, one after the other, until there is another picture, or words in its
    place; return these.

    A control may leave a picture as it is: in a warp, the next column belongs to the same lanes' row.
    """
    image, words = explorer.locator("img"), explorer.locator(".gemm-words")
    before = image.get_attribute("src")
    answered = "([image, words, before]) => image.src !== before || words.textContent !== ''"
    given = [image.element_handle(), words.element_handle(), before]
    for control in reversed(explorer.locator("input:enabled").all()):
        ends = control.get_attribute("type") == "radio" or control.evaluate("it => it.value === it.max")
        control.press("ArrowLeft" if ends else "ArrowRight")
        with contextlib.suppress(TimeoutError):
            page.wait_for_function(answered, arg=given, timeout=PATIENCE)
            break
    page.wait_for_function(answered, arg=given)
    image.evaluate("image => image.decode()")
    return words.text_content()


def test_what_is_not_stored_says_so(course_site, chrome):
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        page.goto((course_site / "notebooks" / f"{road.notebook('warp_tiles').name}.html").as_uri())
        page.wait_for_function("document.querySelectorAll('[data-gemm-explorer]').length === 0")
        for control in page.locator(".gemm-explorer input[type=range]:enabled").all():
            control.press("End")
        page.get_by_text("not among the stored pictures").first.wait_for()
        assert wrong == []


def test_machine_code_by_lines_goes_on_working(tmp_path, chrome):
    course = small_course.write(tmp_path / "course")
    shown = v4.new_output(
        "display_data", see.machine_code(recorded("vectorized", (9, 0)))._repr_mimebundle_()
    )
    for path in course.rglob("*.ipynb"):
        notebook = nbformat.read(path, 4)
        notebook.cells.append(v4.new_code_cell("see.machine_code(...)", id="code", outputs=[shown]))
        nbformat.write(notebook, path)
    build(tmp_path / "site", course, lambda _: None)
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        page.goto((tmp_path / "site/notebooks/00_dots.html").as_uri())
        page.locator("[data-ready] .gemm-lines").focus()
        chosen = page.locator(".gemm-line[aria-selected=true]")
        before = chosen.get_attribute("id")
        page.keyboard.press("ArrowDown")
        assert chosen.get_attribute("id") != before
        assert wrong == []


def test_a_folded_answer_opens_with_a_click_and_its_explorer_moves(tmp_path, chrome):
    cell = "from gemm_course import widgets as see\nsee.fold('Look.', lambda: see.block(), first='Think.')"
    ran = builder.assemble(f"# %%\n{cell}\n", "learner")
    builder.run(ran, tmp_path)
    course = small_course.write(tmp_path / "course")
    for path in course.rglob("*.ipynb"):
        notebook = nbformat.read(path, 4)
        notebook.cells += ran.cells
        nbformat.write(notebook, path)
    build(tmp_path / "site", course, lambda _: None)
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        page.goto((tmp_path / "site/notebooks/00_dots.html").as_uri())
        fold = page.locator("details", has_text="Think.")
        explorer = fold.locator(".gemm-explorer")
        explorer.wait_for(state="attached")
        assert not explorer.is_visible() and not fold.get_by_text("Look.").is_visible()
        fold.locator("summary").click()
        assert fold.get_by_text("Look.").is_visible()
        assert _moved(page, explorer) == "" and wrong == []


def test_search_works_from_disk(course_site, chrome):
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        page.goto((course_site / "notebooks" / "glossary.html").as_uri())
        page.keyboard.press("Control+k")
        page.keyboard.type("wavefront")
        page.keyboard.press("Enter")
        page.get_by_text("Search finished").wait_for()
        results = page.locator("#search-results li a")
        assert "Glossary > wavefront" in results.all_inner_texts()
        results.get_by_text("Glossary > wavefront").click()
        assert page.url.endswith("glossary.html#wavefront") and wrong == []


def test_search_on_a_server_shows_where_words_stand(course_site, chrome):
    with served(course_site) as base, a_page(chrome, own=(base, *OF_THE_PAGE)) as (page, wrong):
        page.goto(f"{base}/search.html?q=wavefront")
        page.locator("#search-results p.context").first.wait_for()
        assert "wavefront" in page.locator("#search-results p.context").first.inner_text().lower()
        assert wrong == []


@contextlib.contextmanager
def served(folder):
    """Serve ``folder`` as any web server would, and yield its address."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_solution_opens_with_the_keyboard_and_the_way_leads_on(course_site, chrome):
    with a_page(chrome, viewport=LAPTOP) as (page, wrong):
        page.goto((course_site / "notebooks" / f"{road.notebook('coalesced').name}.html").as_uri())
        solution = page.locator("#ex-coalesced-solution")
        shown = solution.get_by_text(f"Passed · Exercise {road.number_of('coalesced')}")
        assert not shown.is_visible()
        solution.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert shown.is_visible()
        page.locator("a.right-next").click()
        assert page.url.endswith(f"{road.notebook('shared_memory_tiles').name}.html") and wrong == []


def test_the_theme_can_be_chosen_and_stays(course_site, chrome):
    with a_page(chrome, viewport=LAPTOP, color_scheme="light") as (page, wrong):
        page.goto((course_site / "index.html").as_uri())
        page.get_by_role("button", name="Color mode").press("Enter")
        page.get_by_role("button", name="Dark").press("Enter")
        page.get_by_role("link", name="02 ·").first.click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark" and wrong == []


def test_contents_open_on_a_phone(course_site, chrome):
    with a_page(chrome, viewport=PHONE) as (page, wrong):
        page.goto((course_site / "index.html").as_uri())
        chapter = page.get_by_role("link", name="04 ·")
        assert not chapter.first.is_visible()
        page.locator("button.primary-toggle").press("Enter")
        chapter.first.press("Enter")
        assert page.url.endswith(f"{road.notebook('thread_tiles_1d').name}.html") and wrong == []
