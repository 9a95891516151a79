#!/usr/bin/env python3
"""Opens replays in a headless Chromium: what they show is what their document says, at every time, for the eye, the keyboard and
screen readers, in light and dark, and nothing is asked of any network.

    scripts/pages/replay.py PAGE...             one line for each
    scripts/pages/replay.py PAGE --picture FILE.png [--dark] [--width N] [--height N] [--at TIME_NS] [--flow NUMBER]
"""

import argparse
import gzip
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cdp import Browser  # noqa: E402

PAGE_MOST_BYTES = 3_000_000
EMPTY_MOST_BYTES = 400_000
FIRST_PICTURE_MOST_MS = 2_000
FRAME_MOST_MS = 66
# WCAG 2.2: text (1.4.3), and what else must be seen (1.4.11).
TEXT, SEEN = 4.5, 3.0
HOSTILE = "</script><script>hacked=1</script>\n\"'<img src=x onerror=hacked=1>&amp;"

# Expressions that must be true on every page: logic of the parts, apart from any run.
LOGIC = {
    "the middle of a bent line": "Geometry.at(Geometry.curve({x: 0, y: 0}, {x: 10, y: 0}, 5), 0.5).y === -5",
    "a part of a line ends where it should": """(() => {
        const whole = Geometry.curve({x: 0, y: 0}, {x: 8, y: 4}, 3), part = Geometry.part(whole, 0.25, 0.75);
        const same = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) < 1e-9;
        return same(part.to, Geometry.at(whole, 0.75)) && same(Geometry.at(part, 0.5), Geometry.at(whole, 0.5)); })()""",
    "a line leaves a box at its edge": """(() => {
        const box = { x: 0, y: 0, width: 40, height: 20 };
        return Geometry.exit(box, { x: 100, y: 100 }).y === 10 && Geometry.exit(box, { x: 100, y: 0 }).x === 20; })()""",
    "units": "Words.rate(2.667e9) === '2.67 Gbit/s' && Words.bytes(999) === '999 B' && Words.bytes(999_600) === '1 MB'",
    "black on white": "Math.round(Palette.contrast('#000000', '#ffffff')) === 21",
    "faults that overlap end each by itself": """(() => {
        const [node, event] = [{ is_switch: true, members: 1, x: 0, y: 0, out: [0, 1], name: 'n' }, { nodes: [], links: [0], silent: false }];
        const chunk = { times_ns: [0, 50], use_milli: [[0, 7], [0, 0]], dropped: [[1, 4], []], queued_bytes: [], events: [
            { ...event, kind: 'fault', subject: 'n', time_ns: 5, silent: true }, { ...event, kind: 'fault', subject: 'n-m', time_ns: 10 },
            { ...event, kind: 'repair', subject: 'n-m', time_ns: 20 }, { ...event, kind: 'repair', subject: 'n', time_ns: 30 }] };
        const replay = new Replay({ nodes: [node, node], links: [{ a: 0, b: 1, rate_bps: 1 }], layout: { tiers: [] }, flows: [], chunk });
        const states = [4, 5, 10, 19, 20, 29, 30].map(time => replay.state(0, time)).join();
        replay.take({ ...chunk, times_ns: [60], use_milli: [[9], [1]], dropped: [[0, 6], []], events: [] });
        return states === ',silent,down,down,silent,silent,' && replay.use[0].join() === '0,7,9' && replay.droppedSoFar[0].join() === '0,4,10'
            && replay.indexAt(59) === 1 && replay.indexAt(60) === 2 && replay.placeOf(55) === 1.5; })()""",
}


class Failed(Exception):
    pass


def expect(true, what):
    if not true:
        raise Failed(what)


def differs(browser, act):
    """Whether the picture is another one after something was done."""
    settle = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    browser.ask(settle)
    before = browser.ask("document.getElementById('canvas').toDataURL()")
    act()
    browser.ask(settle)
    return before != browser.ask("document.getElementById('canvas').toDataURL()")


def text(browser, name):
    return browser.ask(f"document.getElementById('{name}').textContent")


def time_moves(browser):
    expect(differs(browser, lambda: browser.key("Home")), "the picture does not change when time does")
    begin = text(browser, "clock")
    browser.key("ArrowRight")
    expect(text(browser, "clock") != begin and browser.ask("weftPage.index") == 1, "the right arrow is no step")
    slider = "document.getElementById('time')"
    browser.ask(f"{slider}.value = {slider}.max, {slider}.dispatchEvent(new Event('input'))")
    expect(browser.ask("weftPage.index === weftPage.replay.length - 1"), "the slider does not move time")
    expect(browser.ask(f"{slider}.getAttribute('aria-valuetext')") in text(browser, "clock"), "the slider does not say the time")
    browser.key("Home")
    browser.key("Space")
    browser.until("weftPage.index > 1", 10)
    browser.key("Space")
    expect(browser.ask("weftPage.playing") is False, "space does not pause")


def lists_say_what_is_drawn(browser):
    browser.ask("weftPage.goTo(Math.floor(weftPage.replay.length / 2))")
    wrong = browser.ask("""(() => {
        const { replay, index } = weftPage, rows = [...document.querySelectorAll('#links tbody tr')];
        const cell = (row, place) => row.cells[place].textContent;
        return rows.filter((row, link) => cell(row, 2) !== Words.percent(replay.use[2 * link][index])
            || cell(row, 3) !== Words.percent(replay.use[2 * link + 1][index])
            || row.cells[row.cells.length - 1].textContent !== (replay.state(link, replay.times[index]) || 'up')).length; })()""")
    expect(wrong == 0, f"{wrong} rows of links are not what the document says")
    rows = browser.ask("document.querySelectorAll('#links tbody tr').length")
    expect(rows == browser.ask("Math.min(weftPage.replay.links.length, 150)"), f"{rows} rows of links")


def events_are_jumped_to(browser):
    if browser.ask("weftPage.replay.marked.length") == 0:
        return
    browser.key("Home")
    expect(differs(browser, lambda: browser.key("n")), "the picture is the same at the first event")
    expect(text(browser, "now") != "", "what happened is not said")
    marks = browser.ask("document.querySelectorAll('#marks .fault, #marks .repair, #marks .move').length")
    kinds = "['fault', 'repair', 'move']"
    wanted = browser.ask(f"weftPage.replay.events.filter(event => {kinds}.includes(event.kind)).length")
    expect(marks == wanted, f"{marks} marks on the slider, {wanted} events")
    down = browser.ask("[...document.querySelectorAll('#links tbody td:last-child')].filter(cell => cell.textContent !== 'up').length")
    links = browser.ask("weftPage.replay.links.filter(link => weftPage.replay.state(link.number, weftPage.replay.times[weftPage.index])).length")
    expect(down == links, f"{down} links down in the list, {links} in the document")
    browser.key("p")


def links_are_chosen(browser):
    place = browser.ask("""(() => {
        const { painter } = weftPage, box = painter.canvas.getBoundingClientRect();
        const link = painter.replay.links.findIndex((_, number) => {
            const point = Geometry.at(painter.curves[number], 0.3);
            return painter.hit(point).link === number && !weftPage.selected.includes(number); });
        const point = Geometry.at(painter.curves[link], 0.3);
        return { link, x: box.x + point.x, y: box.y + point.y }; })()""")
    browser.click(place["x"], place["y"])
    expect(browser.ask(f"weftPage.selected.includes({place['link']})"), "a click chooses no link")
    expect(browser.ask("!document.getElementById('tip').hidden"), "the pointer says nothing of a link")
    lines = browser.ask("weftPage.plots.charts[0].chart.series.length - 1 === 2 * weftPage.selected.length")
    expect(lines, "plots do not have the chosen links")
    before = browser.ask("weftPage.view.k")
    browser.key("+")
    expect(browser.ask("weftPage.view.k") > before, "+ does not zoom")
    browser.key("0")
    pressed = browser.ask("document.querySelectorAll('#links [aria-pressed=true]').length")
    listed = browser.ask("weftPage.lists.rows.filter(row => weftPage.selected.includes(row.link.number)).length")
    expect(pressed == listed, "the list does not say what is chosen")


def flows_are_followed(browser):
    """Each way of some flows is shown at its time, from end to end, with the headers and reasons of the document."""
    flows = browser.ask("weftPage.replay.flows.length")
    expect(browser.ask("document.getElementById('way-part').hidden") == (flows == 0), "flows to follow are offered where there are none, or not")
    if flows == 0:
        return
    field = "document.getElementById('flow')"
    expect(browser.ask(f"{field}.options.length") == flows + 1, "not every flow can be followed")
    browser.key("End")
    first = browser.ask("weftPage.replay.flows[0].number")
    choose = f"{field}.value = '{first}', {field}.dispatchEvent(new Event('change'))"
    expect(differs(browser, lambda: browser.ask(choose)), "a flow's way is not drawn")
    wrong = browser.ask(f"""(() => {{
        const {{ replay, follow }} = weftPage, wrong = [], items = () => [...document.querySelectorAll('#way > li')];
        const most = replay.flows.toSorted((a, b) => b.ways.length - a.ways.length).slice(0, 3);
        for (const flow of most) {{
            {field}.value = String(flow.number);
            {field}.dispatchEvent(new Event('change'));
            for (const way of flow.ways) {{
                const index = replay.placeAfter(way);
                weftPage.goTo(index);
                const due = flow.ways.findLast(one => one.time_ns <= replay.times[index]);
                const stacks = items().map(item => [...item.querySelectorAll('.stack .outer')].map(box => box.textContent).join());
                const names = items().map(item => item.querySelector('h3').textContent);
                const wanted = due.hops.map((hop, place) => `${{place + 1}}. ${{Painter.line(replay.sender(hop.way).name)}} \u2192 ${{Painter.line(replay.receiver(hop.way).name)}}`);
                const chosen = items().every((item, place) => due.hops[place].next_hops === 1 || item.textContent.includes(`takes number ${{due.hops[place].chosen}}`));
                if (stacks.join(';') !== due.hops.map(hop => hop.headers.join()).join(';') || names.join() !== wanted.join() || !chosen) wrong.push([flow.number, way.time_ns]);
            }}
        }}
        return wrong; }})()""")
    expect(wrong == [], f"ways that are not what the document says: {wrong}")
    drawn = browser.ask(f"""weftPage.replay.flows.filter(flow => {{
        {field}.value = String(flow.number);
        {field}.dispatchEvent(new Event('change'));
        const charts = weftPage.follow.charts, wanted = flow.windows.length < 2 ? 0 : 2;
        return charts.length !== wanted || (wanted > 0 && charts[0].chart.data[1].join() !== flow.windows.map(one => one[1]).join()); }}).length""")
    expect(drawn == 0, f"windows of {drawn} flows are not drawn as the document says")
    browser.ask(f"{field}.value = '', {field}.dispatchEvent(new Event('change'))")
    expect(browser.ask("document.querySelectorAll('#way > li').length") == 0, "a flow is followed that nobody chose")


def pans(browser):
    """The time of a frame while the picture is moved: the median of forty."""
    frame_ms = browser.ask("""new Promise(done => {
        const times = [];
        const step = before => requestAnimationFrame(now => {
            times.push(now - before);
            weftPage.view.move(times.length % 2 ? 9 : -7, 2);
            if (times.length < 40) step(now); else done(times.sort((a, b) => a - b)[20]);
        });
        step(performance.now()); })""")
    browser.key("0")
    expect(frame_ms <= FRAME_MOST_MS, f"{frame_ms:.0f} ms for a frame while the picture is moved")
    return frame_ms


def contrasts(browser):
    """The least contrast of text and of everything else that must be seen, on what is behind it."""
    least = browser.ask("""(() => {
        const colours = Palette.read(), on = (names, backs) => Math.min(...names.flatMap(one => backs.map(back => Palette.contrast(one, back))));
        const { text, soft, back, panel, node, band, use, series, wire, down, drop, queue, edge, good, move, focus } = colours;
        return [on([text, soft, down, series[0]], [back, panel, node]), on([...use, wire, down, drop, queue, edge, good, move, focus], [panel]),
            on([...series, edge, focus], [back]), on(use, [band])]; })()""")
    expect(least[0] >= TEXT, f"text has a contrast of {least[0]:.2f}")
    expect(min(least[1:]) >= SEEN, f"colours have a contrast of {min(least[1:]):.2f}")
    return min(least)


def named(browser):
    """Whatever can be pressed or read has a name, and nothing is only for a pointer."""
    nameless = browser.ask("""[...document.querySelectorAll('button, input, select, canvas, table')].filter(one =>
        !(one.textContent.trim().length > 1 || one.getAttribute('aria-label') || one.labels?.length || one.closest('[aria-labelledby]'))).length""")
    expect(nameless == 0, f"{nameless} things to press or read have no name")


def hostile(page, folder):
    """The same page whose title, nodes and events have names that are markup."""
    text = open(page, encoding="utf-8").read()
    data = re.search(r'id="document">(.*?)</script>', text, re.DOTALL)
    name = HOSTILE.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("<", "\\u003c")
    changed = re.sub(r'"(name|title|subject|a_interface)":"[^"]*"', lambda found: f'"{found[1]}":"{name}"', data[1])
    path = os.path.join(folder, "hostile.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:data.start(1)] + changed + text[data.end(1):])
    return path


def names_are_labels(page):
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        browser.open(hostile(page, folder))
        for key in ("Home", "n", "End"):
            browser.key(key)
        expect(browser.ask("globalThis.hacked === undefined && document.images.length === 0"), "a name became markup")
        expect(browser.ask("document.querySelector('#nodes button').textContent").startswith("</script><script>"), "a name is not its label")
        expect(not browser.complaints(), "; ".join(browser.complaints()))


def check(page):
    size = os.path.getsize(page)
    expect(size <= PAGE_MOST_BYTES, f"{size} bytes")
    whole = open(page, encoding="utf-8").read()
    empty = len(gzip.compress(re.sub(r'(id="document">).*?(</script>)', r"\1\2", whole, flags=re.DOTALL).encode()))
    expect(empty <= EMPTY_MOST_BYTES, f"{empty} bytes compressed, without data")
    least = []
    for dark in (False, True):
        with Browser(dark=dark) as browser:
            browser.open(page)
            browser.until("performance.getEntriesByName('first picture').length > 0")
            first_ms = browser.ask("performance.getEntriesByName('first picture')[0].startTime")
            expect(first_ms <= FIRST_PICTURE_MOST_MS, f"first picture after {first_ms:.0f} ms")
            if not dark:
                for what, true in LOGIC.items():
                    expect(browser.ask(true) is True, what)
                time_moves(browser)
                lists_say_what_is_drawn(browser)
                events_are_jumped_to(browser)
                links_are_chosen(browser)
                flows_are_followed(browser)
                frame_ms = pans(browser)
                named(browser)
            least.append(contrasts(browser))
            browser.resize(400, 800)
            browser.until("weftPage.view.width < 400 && document.scrollingElement.scrollWidth <= 400", 10)
            expect(not browser.complaints(), "; ".join(browser.complaints()))
    names_are_labels(page)
    return f"{size / 1e3:.0f} kB, {empty / 1e3:.0f} kB of them the page compressed, first picture {first_ms:.0f} ms, frame {frame_ms:.0f} ms, contrast {min(least):.2f}"


def picture(arguments):
    with Browser(arguments.width, arguments.height, arguments.dark) as browser:
        browser.open(arguments.pages[0])
        if arguments.at is not None:
            browser.ask(f"weftPage.goTo(weftPage.replay.indexAt({arguments.at}))")
        if arguments.flow is not None:
            browser.ask(f"weftPage.follow.choose({arguments.flow}), weftPage.paint()")
        browser.until("performance.getEntriesByName('first picture').length > 0")
        browser.picture(arguments.picture)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--picture")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=820)
    parser.add_argument("--at", type=int)
    parser.add_argument("--flow", type=int)
    arguments = parser.parse_args()
    if arguments.picture:
        picture(arguments)
        return
    failed = False
    for page in arguments.pages:
        try:
            verdict = f"ok: {check(page)}"
        except (Failed, RuntimeError) as error:
            failed, verdict = True, f"FAIL: {error}"
        print(f"{page.removeprefix('target/pages/'):52} {verdict}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
