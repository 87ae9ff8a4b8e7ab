#!/usr/bin/env python3
"""Opens the pages of a profile, of a comparison and of a graph in a browser without a window, and looks at them.

  open_page.py <make_page> [--chromium FILE] [--pictures FOLDER] [--spans N]

At 1400 and 390 pixels, dark and light: the script runs without an error and asks for nothing elsewhere, a
click on a span shows what it is, the keyboard zooms and searches, no text is cut, and many spans open in time.
Speaks the DevTools protocol through a websocket, with Python's standard library only. Skipped (77) when there
is no Chromium.
"""

import argparse
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

SKIPPED = 77
NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome")
OPENS_WITHIN_S = 2.0
RECORD_OPENS_WITHIN_S = 1.0
ANSWERS_WITHIN_S = 30

# Elements whose text is wider than they are, and the page when it scrolls sideways. Frames that scroll
# themselves, and what is not shown, are fine; a drawing's texts have no width to be cut at.
CUT_TEXTS = """(() => {
  const cut = [];
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > room) cut.push(`page: ${document.documentElement.scrollWidth} of ${room}`);
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest("script") || one.offsetParent === null) continue;
    const style = getComputedStyle(one);
    const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
    if (!scrolls && !one.ownerSVGElement && one.scrollWidth > one.clientWidth + 1 && style.display !== "inline" && one.tagName !== "CANVAS")
      cut.push(`${one.tagName} ${one.id}: ${one.textContent.slice(0, 40)}`);
    const box = one.getBoundingClientRect();
    if (!one.closest(".frame, #frame") && (box.right > room + 1 || box.left < -1)) cut.push(`${one.tagName} ${one.id} leaves the page`);
  }
  return cut;
})()"""


class Browser:
    """A Chromium and a connection to its one page."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0",
             f"--user-data-dir={folder}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number = 0
        self.events = []
        try:
            self.socket = self._connect(folder)
        except BaseException:
            self.close()
            raise

    def _connect(self, folder):
        port = self._wait_for(lambda: self._port(folder))
        pages = self._wait_for(lambda: self._pages(port))
        path = pages[0]["webSocketDebuggerUrl"].split("/", 3)[3]
        connection = socket.create_connection(("127.0.0.1", port), ANSWERS_WITHIN_S)
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall((f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                            "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._exactly(connection, 1)
        if b" 101 " not in head.splitlines()[0]:
            raise RuntimeError(f"no websocket: {head!r}")
        return connection

    def _wait_for(self, ask):
        end = time.monotonic() + ANSWERS_WITHIN_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the browser ended with {self.process.returncode}")
            answer = ask()
            if answer:
                return answer
            time.sleep(0.05)
        raise RuntimeError("the browser does not answer")

    @staticmethod
    def _port(folder):
        try:
            with open(os.path.join(folder, "DevToolsActivePort"), encoding="ascii") as file:
                return int(file.readline())
        except (OSError, ValueError):
            return 0

    @staticmethod
    def _pages(port):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                return [one for one in json.load(answer) if one["type"] == "page"]
        except OSError:
            return []

    @staticmethod
    def _exactly(connection, count):
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                raise RuntimeError("the browser closed the connection")
            data += part
        return data

    def _send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack(">BB", 0x81, 0x80 | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack(">BBH", 0x81, 0x80 | 126, len(data))
        else:
            head = struct.pack(">BBQ", 0x81, 0x80 | 127, len(data))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def _receive(self):
        """One message, of one frame or more."""
        message = b""
        while True:
            first, second = self._exactly(self.socket, 2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._exactly(self.socket, 2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._exactly(self.socket, 8))[0]
            data = self._exactly(self.socket, size)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        self._send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") != self.number:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_until(self, script):
        end = time.monotonic() + ANSWERS_WITHIN_S
        while not self.value(script):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {script}")
            time.sleep(0.02)

    def open(self, path, width, theme, drawn="!!document.getElementById('canvas')?.dataset.drawn"):
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Network.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.events.clear()
        begin = time.monotonic()
        self.call("Page.navigate", url="file://" + path)
        self.wait_until(f"document.readyState === 'complete' && {drawn}")
        return time.monotonic() - begin

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                  clickCount=1)

    def press(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def problems(self):
        """Errors of the page and requests to elsewhere."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"])[:500])
            elif event.get("method") == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(f"asks for {url}")
        return found

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


def look_at(browser, path, width, theme, pictures):
    browser.open(path, width, theme)
    dark = browser.value("npumesh.isDark()")
    expect(dark == (theme == "dark"), f"the page is {'dark' if dark else 'light'}")
    expect("</script>" in browser.value("document.getElementById('operators').textContent"),
           "a name that looks like a script is not shown as text")

    expect("npumesh profile prof/" in browser.value("document.getElementById('origin').textContent"),
           "the page does not say where it comes from")
    bars = browser.value("document.querySelectorAll('#parts .bar').length")
    expect(bars == browser.value("npumesh.data.facts.ranks.length") > 0, f"{bars} bars of parts")
    # The second lane of the first rank is that of computations: its first span is a product.
    browser.value("document.getElementById('timeline').scrollIntoView({block: 'start'})")
    for _ in range(5):
        browser.value("document.getElementById('zoom-in').click()")
    box = browser.value("(() => { const b = document.getElementById('canvas').getBoundingClientRect();"
                        " return [b.left, b.top, b.width]; })()")
    # Below ruler, title and the lane of steps, in the middle of a row.
    y = box[1] + 24 + 22 + (14 + 18 + 6) + 14 + 8
    found = ""
    for part in range(10, 90):
        x = box[0] + box[2] * part / 100
        browser.mouse("mouseMoved", x, y)
        found = browser.value("document.getElementById('tooltip').hidden ? '' : "
                              "document.getElementById('tooltip').textContent")
        if "name:" in found:
            browser.mouse("mousePressed", x, y)
            browser.mouse("mouseReleased", x, y)
            break
    expect("what: operator" in found and "rank: 0 (host-a), compute stream" in found, f"the tooltip says {found!r}")
    details = browser.value("document.getElementById('details').innerText")
    expect("length" in details and "host-a" in details, f"the details say {details!r}")
    cut = browser.value(CUT_TEXTS)
    expect(not cut, f"cut: {cut}")
    if pictures:
        browser.picture(os.path.join(pictures, f"profile_{width}_{theme}.png"))

    browser.press("Escape")
    expect(browser.value("document.getElementById('details').hidden"), "Escape does not clear")
    browser.press("/")
    expect(browser.value("document.activeElement.id") == "search", "/ does not search")
    browser.call("Input.insertText", text="matmul")
    expect(int(browser.value("document.getElementById('found').textContent").split()[0]) > 0, "nothing found")
    browser.press("Enter")
    details = browser.value("document.getElementById('details').innerText")
    expect("MatMul" in details, f"the search shows {details!r}")
    browser.value("document.querySelector('#types th:nth-child(3) button').click()")
    expect(browser.value("document.querySelector('#types th:nth-child(3)').ariaSort") == "descending", "no sorting")
    browser.value("document.getElementById('theme').click()")
    expect(browser.value("npumesh.isDark()") != dark, "the switch does nothing")
    expect(not browser.problems(), f"problems: {browser.problems()}")
    print(f"ok {width} pixels, {theme}")


COMPARISON_DRAWN = "!!document.body?.dataset.drawn"


def look_at_comparison(browser, path, width, theme, pictures):
    browser.open(path, width, theme, COMPARISON_DRAWN)
    text = lambda name: browser.value(f"document.getElementById('{name}').innerText")
    expect("rank 1" in text("verdict") and "layer20/</script>/add" in text("verdict"), f"verdict: {text('verdict')!r}")
    expect("npumesh dump compare mine golden" in text("origin"), "the page does not say where it comes from")
    expect("rows 20 to 39 of 40" in text("operator-body"), f"the operator: {text('operator-body')!r}")
    expect(browser.value("document.querySelectorAll('#operator-body td').length") == 24, "not 8 samples")
    # The culprit, in the middle of what is seen of the graph: three above and three below it, and the input.
    expect(browser.value("document.querySelectorAll('#graph g[data-row]').length") == 8, "not the neighbourhood")
    off = browser.value("(() => { const f = document.getElementById('graph').getBoundingClientRect();"
                        " const b = document.querySelector('#graph .origin rect').getBoundingClientRect();"
                        " return Math.abs((b.top + b.bottom - f.top - f.bottom) / 2); })()")
    expect(off < 200, f"the culprit is {off} pixels off the middle")
    expect(browser.value("document.querySelector('#ranks details').id") == "rank-1", "the blamed rank is not first")
    expect(browser.value("document.querySelector('#ranks details').open"), "the blamed rank is folded")
    expect(not browser.value("document.getElementById('rank-0').open"), "the other rank is not folded")
    cut = browser.value(CUT_TEXTS)
    expect(not cut, f"cut: {cut}")
    if pictures:
        browser.picture(os.path.join(pictures, f"compare_{width}_{theme}.png"))

    browser.press("n")
    expect("layer21/" in text("operator-name"), "n does not go on")
    browser.press("p")
    browser.press("p")
    expect("layer20/" in text("operator-name"), "p does not go back")
    browser.value("document.querySelector('#graph .consequence').focus()")
    browser.press("Enter")
    expect("layer21/" in text("operator-name"), "Enter on an operator of the graph does nothing")
    browser.value("document.getElementById('whole').click()")
    expect(browser.value("document.querySelectorAll('#graph g[data-row]').length") == 42, "not the whole graph")
    browser.value("document.querySelector('#rank-1 details summary').click()")
    browser.wait_until("document.querySelectorAll('#rank-1 details td').length === 80")
    browser.call("Emulation.setEmulatedMedia", media="print")
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    expect(paper == "rgb(255, 255, 255)", f"prints on {paper}")
    browser.call("Emulation.setEmulatedMedia", media="")
    expect(not browser.problems(), f"problems: {browser.problems()}")
    print(f"ok comparison, {width} pixels, {theme}")


def look_at_graph(browser, path, width, theme, pictures):
    browser.open(path, width, theme, COMPARISON_DRAWN)
    text = lambda name: browser.value(f"document.getElementById('{name}').innerText")
    boxes = lambda: browser.value("document.querySelectorAll('#graph g[data-node]').length")
    expect("npumesh graph layered.air" in text("origin"), "the page does not say where it comes from")
    folded = boxes()
    expect(browser.value("document.querySelector('#graph .folded').textContent").endswith(
        "layers 1 .. 238 operators each, as above"), "the layers are not folded")
    # A search by an attribute, and all that the node says.
    browser.press("/")
    expect(browser.value("document.activeElement.id") == "search", "/ does not search")
    browser.call("Input.insertText", text="layers.0.norm axes=[-1]")
    expect(text("found-count").startswith("1 of "), f"the search finds {text('found')!r}")
    browser.press("Enter")
    expect(text("node-name") == "model.layers.0.norm (SoftmaxV2)", f"the node is {text('node-name')!r}")
    for words in ("axes", "[-1] (default)", "embed:0", "model.layers.0.left.x1", "float32[4,4]"):
        expect(words in text("node-body"), f"{words!r} is not in {text('node-body')!r}")
    expect(browser.value("document.querySelector('#graph .chosen').dataset.node") == "model.layers.0.norm", "not marked")
    # A link leads to a weight, which is not drawn, and a search to a layer that is folded away.
    browser.value("[...document.querySelectorAll('#node-body button')].find((b) => b.textContent.includes('left')).click()")
    browser.value("[...document.querySelectorAll('#node-body button')].find((b) => b.textContent === 'l0:0').click()")
    expect("float32[4,4] 0.5, 0.5" in text("node-body"), f"the weight says {text('node-body')!r}")
    browser.value("(() => { const s = document.getElementById('search'); s.value = 'layers.2.gate';"
                  " s.dispatchEvent(new Event('input')); })()")
    browser.value("document.querySelector('#found button').click()")
    expect(boxes() > folded, "a folded layer is not unfolded")
    expect(browser.value("document.querySelector('#graph .chosen').dataset.node") == "model.layers.2.gate", "not marked")
    browser.value("document.getElementById('fold').click()")
    expect(boxes() == folded, "the layers are not folded again")
    cut = browser.value(CUT_TEXTS)
    expect(not cut, f"cut: {cut}")
    if pictures:
        browser.picture(os.path.join(pictures, f"graph_{width}_{theme}.png"))
    browser.value("document.querySelector('#graph .folded').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    expect(boxes() > folded, "a click does not unfold")
    browser.call("Emulation.setEmulatedMedia", media="print")
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    expect(paper == "rgb(255, 255, 255)", f"prints on {paper}")
    browser.call("Emulation.setEmulatedMedia", media="")
    expect(not browser.problems(), f"problems: {browser.problems()}")
    print(f"ok graph, {width} pixels, {theme}")


def open_large_comparison(browser, path):
    took = browser.open(path, 1400, "light", COMPARISON_DRAWN)
    begin = time.monotonic()
    browser.value("document.getElementById('whole').click()")
    count = int(browser.value("document.getElementById('graph').dataset.drawn"))
    drawn = time.monotonic() - begin
    print(f"{count} operators: {took:.2f} s to open, {drawn:.2f} s to draw the whole graph")
    expect(count > 5000, f"only {count} operators")
    browser.value("document.getElementById('graph').scrollTo(0, 0)")
    browser.wait_until("document.querySelector('#graph .input') !== null")
    browser.value("document.getElementById('culprit').click()")
    browser.wait_until("document.querySelector('#graph .origin.chosen') !== null")
    expect(took < OPENS_WITHIN_S and drawn < OPENS_WITHIN_S, "too slow")


def look_at_record(browser, path, width, theme, pictures):
    browser.open(path, width, theme, COMPARISON_DRAWN)
    text = lambda name: browser.value(f"document.getElementById('{name}').textContent")
    expect("npumesh record records/" in text("origin"), "the page does not say where it comes from")
    expect("Look first at rank 2" in text("verdict"), f"the verdict is {text('verdict')!r}")
    expect(browser.value("document.querySelector('#lanes .blamed').textContent").startswith("rank 2"), "not marked")
    expect(browser.value("document.querySelectorAll('#lanes .open').length") == 3, "not three calls never left")
    whole = text("span")
    browser.value("document.getElementById('zoom-in').click()")
    expect(text("span") != whole, "zooming shows the same")
    browser.value("document.getElementById('all').click()")
    expect(text("span") == whole, "all is another time than before")
    browser.value("document.querySelector('#lanes .open').dispatchEvent(new MouseEvent('click'))")
    expect("never left" in text("said"), f"a click says {text('said')!r}")
    cut = browser.value(CUT_TEXTS)
    expect(not cut, f"cut: {cut}")
    if pictures:
        browser.picture(os.path.join(pictures, f"record_{width}_{theme}.png"))
    expect(not browser.problems(), f"problems: {browser.problems()}")
    print(f"ok record, {width} pixels, {theme}")


def open_large_record(browser, path, width, theme):
    """64 ranks with full rings open within a second, and what is to be seen first is the verdict."""
    took = min(browser.open(path, width, theme, COMPARISON_DRAWN) for _ in range(3))
    inside = ("(() => { const b = document.querySelector('%s').getBoundingClientRect();"
              " return b.top >= 0 && b.bottom <= innerHeight && b.left >= 0 && b.left < innerWidth; })()")
    expect(browser.value(inside % "#verdict .warning"), "the verdict is not in sight")
    expect("Look first at rank 2" in browser.value("document.querySelector('#verdict .warning').textContent"), "wrong verdict")
    expect(browser.value("document.querySelectorAll('#lanes text:not(.faint)').length") == 64, "not 64 lanes")
    in_frame = ("(() => { const f = document.getElementById('frame').getBoundingClientRect();"
                " const b = document.querySelector('#lanes .blamed').getBoundingClientRect();"
                " return b.top >= f.top - 1 && b.bottom <= f.bottom + 1; })()")
    expect(browser.value(in_frame), "the lane of the blamed rank is scrolled away")
    expect("waits for rank 2" in browser.value("document.getElementById('lanes').textContent"), "no rank waits")
    expect("earlier calls are not drawn" in browser.value("document.getElementById('legend').textContent"), "not said")
    expect(not browser.problems(), f"problems: {browser.problems()}")
    print(f"64 ranks with 8192 calls, {width} pixels, {theme}: open in {took:.2f} s")
    expect(took < RECORD_OPENS_WITHIN_S, f"that is more than {RECORD_OPENS_WITHIN_S} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("make_page")
    parser.add_argument("--chromium", default=next(filter(None, map(shutil.which, NAMES)), None))
    parser.add_argument("--pictures")
    parser.add_argument("--spans", default="100000")
    options = parser.parse_args()
    if options.chromium is None:
        print(f"skipped: none of {', '.join(NAMES)} is installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        small, large = os.path.join(folder, "small.html"), os.path.join(folder, "large.html")
        subprocess.run([options.make_page, "profile", small, "3", "2000"], check=True)
        subprocess.run([options.make_page, "profile", large, "4", options.spans], check=True)
        compared, many = os.path.join(folder, "compared.html"), os.path.join(folder, "many.html")
        subprocess.run([options.make_page, "compare", compared, "40"], check=True)
        subprocess.run([options.make_page, "compare", many, "5000"], check=True)
        graph = os.path.join(folder, "graph.html")
        subprocess.run([options.make_page, "graph", graph, "24"], check=True)
        record = os.path.join(folder, "record.html")
        subprocess.run([options.make_page, "record", record, "4", "3"], check=True)
        records = os.path.join(folder, "records.html")
        subprocess.run([options.make_page, "record", records, "64", "8192"], check=True)
        browser = Browser(options.chromium, os.path.join(folder, "user"))
        try:
            for width in (1400, 390):
                for theme in ("dark", "light"):
                    look_at(browser, small, width, theme, options.pictures)
                    look_at_comparison(browser, compared, width, theme, options.pictures)
                    look_at_graph(browser, graph, width, theme, options.pictures)
                    look_at_record(browser, record, width, theme, options.pictures)
                    open_large_record(browser, records, width, theme)
            open_large_comparison(browser, many)
            took = min(browser.open(large, 1400, "light") for _ in range(3))
            print(f"{options.spans} spans open in {took:.2f} s")
            expect(took < OPENS_WITHIN_S, f"that is more than {OPENS_WITHIN_S} s")
            frame = browser.value("(async () => { const before = performance.now();"
                                  " document.getElementById('zoom-in').click();"
                                  " await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
                                  " return performance.now() - before; })()")
            print(f"a zoom is drawn in {frame:.0f} ms")
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
