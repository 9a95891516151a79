#!/usr/bin/env python3
"""Opens the page of a lab that is up in a headless Chromium, and breaks and mends it there: what is clicked happens in the kernel, and
nobody without the token changes anything. Needs root, as labs do.

    scripts/pages/live.py WEFT LAB SWITCH NEIGHBOUR [--move SERVER SWITCH] [--picture FILE.png] [--cost SECONDS]

The link between the two must be there and well. --move takes a server to another rack and home. --cost also measures what the server and the page take.
"""

import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cdp import Browser  # noqa: E402
from replay import Failed, contrasts, expect, named, text  # noqa: E402

KERNEL_MOST_S = 0.2
SHOWN_MOST_S = 1.0
SERVER_MOST = 0.05
FRAME_MOST_MS = 33
SIOCGIFFLAGS, IFF_UP, CLONE_NEWNET = 0x8913, 1, 0x40000000


class Link:
    """Both ends of a link, asked without leaving this process."""

    def __init__(self, nodes, one, other):
        self.ends = [self.end(nodes, node, far) for node, far in ((one, other), (other, one))]

    @staticmethod
    def end(nodes, name, far):
        node = next(node for node in nodes if node["name"] == name)
        found = []

        def inside():
            with open(f"/run/netns/{node['namespace']}") as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0:
                    found.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return found[0], next(one for one in node["interfaces"] if one == far).encode()

    def is_up(self):
        asked = (struct.unpack("16sH22x", fcntl.ioctl(end, SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))) for end, name in self.ends)
        return all(flags & IFF_UP for _, flags in asked)


class Server:
    """`weft lab watch`. Use it in a `with`."""

    def __init__(self, weft, lab):
        self.process = subprocess.Popen([weft, "lab", "watch", lab, "-o", "json"], stdout=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.url, self.address, self.token = said["url"], said["address"], said["token"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        expect(self.process.wait(10) == 0, "weft lab watch does not end well")

    def cpu_s(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def press(browser, selector):
    """Presses the middle of an element as a pointer does."""
    place = browser.ask(f"""(() => {{ const one = document.querySelector('{selector}'); one.scrollIntoView({{ block: 'center' }});
        const box = one.getBoundingClientRect(); return {{ x: box.x + box.width / 2, y: box.y + box.height / 2, off: one.disabled }}; }})()""")
    expect(not place["off"], f"{selector} cannot be pressed")
    browser.click(place["x"], place["y"])


def choose(browser, link):
    """Clicks a link in the picture."""
    browser.ask("window.scrollTo(0, 0)")
    place = browser.ask(f"""(() => {{
        const {{ painter }} = weftPage, box = painter.canvas.getBoundingClientRect();
        const share = [0.3, 0.4, 0.5, 0.6, 0.7].find(one => painter.hit(Geometry.at(painter.curves[{link}], one)).link === {link});
        const point = Geometry.at(painter.curves[{link}], share); return {{ x: box.x + point.x, y: box.y + point.y }}; }})()""")
    browser.click(place["x"], place["y"])


def within(seconds, is_true, what):
    """Seconds until something is so."""
    begin = time.monotonic()
    while not is_true():
        expect(time.monotonic() - begin < 10, f"never: {what}")
        time.sleep(0.001)
    took = time.monotonic() - begin
    expect(took <= seconds, f"{took:.3f} s until {what}")
    return took


def state(browser, link):
    return browser.ask(f"weftPage.replay.state({link}, weftPage.replay.end)")


def breaks_and_mends(browser, link, interface):
    choose(browser, link)
    browser.until("!document.getElementById('act').hidden")
    begin = time.monotonic()
    press(browser, "#act [data-verb=fail]")
    kernel = within(KERNEL_MOST_S, lambda: not interface.is_up(), "the link is down in the kernel")
    browser.until(f"weftPage.replay.state({link}, weftPage.replay.end) === 'down'", 5)
    shown = time.monotonic() - begin
    expect(shown <= SHOWN_MOST_S, f"{shown:.2f} s until the page shows it")
    browser.until("document.getElementById('done').textContent.includes('routes followed')", 25)
    row = browser.ask(f"weftPage.lists.rows.find(row => row.link.number === {link}).state.textContent")
    expect(row == "down", f"the list says `{row}`")
    browser.until("document.querySelectorAll('#marks .fault').length === 1", 5)
    press(browser, "#act [data-verb=repair]")
    within(KERNEL_MOST_S, interface.is_up, "the link is up in the kernel")
    browser.until(f"weftPage.replay.state({link}, weftPage.replay.end) === ''", 5)
    browser.until("document.getElementById('done').textContent.includes('0 faults')", 25)
    return kernel, shown


def by_keyboard(browser, link, interface):
    """The same without a pointer: a link in the list, then silence and everything repaired."""
    browser.ask(f"weftPage.lists.rows.find(row => row.link.number === {link}).button.focus()")
    browser.key("Enter")
    browser.ask("document.querySelector('#act [data-verb=silence]').focus()")
    browser.key("Enter")
    browser.until(f"weftPage.replay.state({link}, weftPage.replay.end) === 'silent'", 5)
    expect(interface.is_up(), "a silent link stays up")
    browser.until("!document.getElementById('repair-all').disabled", 25)
    browser.ask("document.querySelector('#act [data-verb=impair]').focus()")
    browser.key("Enter")
    browser.until("document.getElementById('done').textContent.includes('2 slow ways')", 25)
    browser.until("!document.getElementById('repair-all').disabled", 25)
    press(browser, "#repair-all")
    browser.until("document.getElementById('done').textContent.endsWith('0 faults now.')", 25)
    browser.until(f"weftPage.replay.state({link}, weftPage.replay.end) === '' && weftPage.replay.broken.size === 0", 25)


def moves(browser, server, there):
    """A server is taken to another rack and home, by its link in the list."""
    browser.ask(f"weftPage.lists.rows.find(row => row.link.name.split(' \u2013 ').includes('{server}')).button.click()")
    browser.until("!document.getElementById('moving').hidden", 5)
    for rack in (there, None):
        browser.until("!document.getElementById('racks').disabled", 25)
        home = browser.ask("weftPage.replay.links[weftLive.what.link].name.replace(weftLive.what.server, '').replace(' \u2013 ', '')")
        browser.ask(f"weftLive.racks.value = '{rack or home}', weftLive.racks.dispatchEvent(new Event('change'))")
        browser.until(f"document.getElementById('done').textContent.startsWith('{server} is at {rack or home} after')", 25)
    browser.until("document.querySelectorAll('#marks .move').length === 2", 5)


def captures(browser, server, link):
    """The page has frames of both ends of the link that is chosen; over HTTP they come until nobody reads any more, and errors before anything."""
    with tempfile.TemporaryDirectory() as folder:
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        press(browser, "#capture")
        browser.until("document.getElementById('done').textContent.includes('.pcapng, ')", 25)
        file = pathlib.Path(folder, text(browser, "done").split(",")[0])
        within(10, file.exists, "the browser has saved the file")
        ports = subprocess.check_output(["tshark", "-r", file, "-T", "fields", "-e", "frame.interface_name"], stderr=subprocess.DEVNULL, text=True).split()
        ends = [f"{one}:{other}" for one, other in (link, link[::-1])]
        expect(sorted(set(ports)) == sorted(ends), f"frames of {set(ports)} in the place of {ends}")
    allowed = {"Host": server.address, "Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    for body, status in (({"ports": [ends[0]]}, 200), ({"ports": ["no:port"]}, 409), ({}, 400)):
        said = asked(server.address, "POST", "/api/v1/capture", allowed, json.dumps(body))
        expect(said == status, f"{said} in the place of {status} for a capture of {body}")


def time_goes_on(browser):
    first = browser.ask("weftPage.replay.length")
    browser.until(f"weftPage.replay.length > {first} + 5 && weftPage.index === weftPage.replay.length - 1", 10)
    slider = "document.getElementById('time')"
    browser.ask(f"{slider}.value = 2, {slider}.dispatchEvent(new Event('input'))")
    there = browser.ask("weftPage.replay.length")
    browser.until(f"weftPage.replay.length > {there} + 3", 10)
    expect(browser.ask("weftPage.index") == 2, "the slider does not stay where it is put")
    browser.ask("document.activeElement.blur()")
    browser.key("End")
    browser.until("weftPage.index === weftPage.replay.length - 1")
    browser.until("document.getElementById('probes').textContent.includes('arrive')", 10)


def strangers(server, link, interface):
    """Pages without the token, from elsewhere, and with wrong verbs: none of them changes anything."""
    with Browser() as browser:
        browser.visit(f"http://{server.address}/#token=0123", "document.getElementById('done')?.textContent")
        expect("token" in text(browser, "done"), f"without a token: {text(browser, 'done')}")
        expect(browser.ask("globalThis.weftPage === undefined"), "the page shows a lab to who has no token")
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file, Browser() as browser:
        file.write("<!DOCTYPE html><title>elsewhere</title>")
        file.flush()
        browser.open(file.name, "document.title === 'elsewhere'")
        body = json.dumps({"what": link})
        for options in (
            f"{{ method: 'POST', headers: {{ Authorization: 'Bearer {server.token}', 'Content-Type': 'application/json' }}, body: '{body}' }}",
            f"{{ method: 'POST', mode: 'no-cors', headers: {{ 'Content-Type': 'text/plain' }}, body: '{body}' }}",
        ):
            seen = browser.ask(f"fetch('http://{server.address}/api/v1/fail', {options}).then(answer => answer.ok, () => false)")
            expect(seen is False, "a page from elsewhere has an answer")
    allowed = {"Host": server.address, "Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    for changed, verb, status in (
        ({}, "PUT", 405),
        ({"Authorization": "Bearer no"}, "POST", 401),
        ({"Origin": "http://elsewhere.example"}, "POST", 403),
        ({"Host": "elsewhere.example"}, "POST", 421),
        ({"Content-Type": "text/plain"}, "POST", 415),
    ):
        for path in ("fail", "capture"):
            said = asked(server.address, verb, f"/api/v1/{path}", {**allowed, **changed}, body)
            expect(said == status, f"{said} in the place of {status} for {verb} {path} {changed}")
    expect(asked(server.address, "POST", "/api/v1/destroy", allowed, body) == 404, "a verb that is none")
    expect(interface.is_up(), "a stranger has taken the link down")


def asked(address, verb, path, headers, body):
    """The status of an answer, with headers as they are given."""
    host, port = address.rsplit(":", 1)
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), f"Content-Length: {len(body)}", "Connection: close"]
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        return int(connection.recv(64).split()[1])


def cost(browser, server, seconds):
    """CPU of the server, of one core, and the main thread's time for each look and its picture, by the browser's own trace."""
    browser.call("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": ["devtools.timeline", "toplevel"]})
    begin, cpu = time.monotonic(), server.cpu_s()
    time.sleep(seconds)
    share = (server.cpu_s() - cpu) / (time.monotonic() - begin)
    browser.call("Tracing.end")
    while not any(event.get("method") == "Tracing.tracingComplete" for event in browser.events):
        browser.events.append(browser.next())
    traced = [one for event in browser.events if event.get("method") == "Tracing.dataCollected" for one in event["params"]["value"]]
    frames = [one["dur"] / 1e3 for one in traced if one["name"] == "FireAnimationFrame" and "dur" in one]
    tasks = sorted((one["dur"] / 1e3 for one in traced if one["name"] == "RunTask" and "dur" in one), reverse=True)
    frame = statistics.median(frames)
    longest = tasks[len(tasks) // 100] if tasks else 0
    print(f"server {share:.1%} of a core; picture {frame:.1f} ms in the median of {len(frames)}; tasks of the page {longest:.1f} ms at the 99th percentile")
    expect(share <= SERVER_MOST, f"the server takes {share:.1%} of a core")
    expect(frame <= FRAME_MOST_MS, f"{frame:.1f} ms for a frame")


def main():
    parser = argparse.ArgumentParser()
    for name in ("weft", "lab", "switch", "neighbour"):
        parser.add_argument(name)
    parser.add_argument("--picture")
    parser.add_argument("--move", nargs=2, metavar=("SERVER", "SWITCH"))
    parser.add_argument("--cost", type=float)
    arguments = parser.parse_args()
    weft, names = os.path.realpath(arguments.weft), [arguments.switch, arguments.neighbour]
    nodes = json.loads(subprocess.check_output([weft, "lab", "ps", arguments.lab, "-o", "json"]))["nodes"]
    interface = Link(nodes, *names)
    with Server(weft, arguments.lab) as server, Browser() as browser:
        browser.visit(server.url)
        link = browser.ask(f"weftPage.replay.links.findIndex(link => {names}.every(name => link.name.split(' \\u2013 ').includes(name)))")
        expect(link is not None and link >= 0, f"no link between {names}")
        time_goes_on(browser)
        kernel, shown = breaks_and_mends(browser, link, interface)
        by_keyboard(browser, link, interface)
        choose(browser, link)
        captures(browser, server, names)
        if arguments.move:
            moves(browser, *arguments.move)
        named(browser)
        least = contrasts(browser)
        browser.until("!document.querySelector('#act [data-verb=fail]').disabled", 25)
        if arguments.picture:
            press(browser, "#act [data-verb=fail]")
            browser.until(f"weftPage.replay.state({link}, weftPage.replay.end) === 'down'", 5)
            browser.ask("window.scrollTo(0, 0)")
            time.sleep(1.5)
            browser.picture(arguments.picture)
            press(browser, "#repair-all")
            browser.until("weftPage.replay.broken.size === 0", 25)
        if arguments.cost:
            cost(browser, server, arguments.cost)
        browser.resize(400, 800)
        browser.until("weftPage.view.width < 400 && document.scrollingElement.scrollWidth <= 400", 10)
        complaints = browser.complaints(server.address)
        expect(not complaints, "; ".join(complaints))
        strangers(server, names, interface)
    print(f"ok: down in the kernel {kernel * 1e3:.0f} ms after the click, on the page {shown * 1e3:.0f} ms after it; contrast {least:.2f}")


if __name__ == "__main__":
    try:
        main()
    except (Failed, RuntimeError) as error:
        sys.exit(f"FAIL: {error}")
