"""screens.py [--check]: draws what belfry shows in a terminal into docs/screens, by running it; or tells whether the screens
there are still what it shows. Times, ages and the ends of IDs are different each time, so they are drawn as of one fixed day, and
not compared."""

import datetime
import fcntl
import io
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCREENS = ROOT / "docs" / "screens"
COLUMNS, ROWS = 114, 40

FILES = {
    "jobs.yaml": """\
name: report
schedule: {cron: "30 9 * * 1-5", timezone: Europe/Berlin}
target: {exec: {argv: [sh, -c, echo 42 rows]}}
labels: {team: billing}
---
name: clean-up
schedule: {cron: "@daily", jitter: 5m}
target: {exec: {argv: [sh, -c, "echo nothing to do"]}}
---
name: mail
target: {exec: {argv: [sh, -c, "echo connection refused >&2; exit 1"]}}
retry: {max_attempts: 2, initial: 1ms, max: 1ms}
""",
    "report.yaml": """\
name: report
schedule: {cron: "0 8 * * 1-5", timezone: Europe/Berlin}
target: {exec: {argv: [sh, -c, echo 42 rows]}}
labels: {team: billing}
timeout: 5m
""",
}

# Done before the screens are drawn, each until it is done.
BEFORE = [
    "belfry job apply -f jobs.yaml",
    "belfry job trigger report --wait",
    "belfry job trigger mail --wait",
    "belfry job trigger report --delay 2h",
    "belfry job trigger clean-up --wait",
]

SHOWN = {
    "look": ["belfry job list", "belfry run list"],
    "fail": ["belfry job trigger mail --wait", "belfry dead-letter list"],
    "diff": ["belfry job apply -f report.yaml --dry-run"],
}


def on_terminal(command, folder, env):
    """What a command shows on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(command, shell=True, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # nobody has the terminal any more
            block = b""
        if not block:
            break
        shown += block
    os.close(ours)
    process.wait(timeout=30)
    return shown.decode().replace("\r\n", "\n")


DAY = datetime.date(2026, 11, 21)
STAMP = re.compile(r"\d{4}-\d\d-\d\d(?=[ T]\d\d:\d\d:\d\d)")
RUN = re.compile(r"~0[0-9a-z]{8}(?:~[0-9a-z]{13})?")


def as_of_one_day(text, began):
    """The same on every day: the dates are those of one week, and runs are named as they would be in it."""
    shift = DAY - began
    text = STAMP.sub(lambda m: str(datetime.date.fromisoformat(m[0]) + shift), text)
    text = re.sub(r"runs on \S+", "runs on host-1", text)
    seen = {}
    return RUN.sub(lambda m: seen.setdefault(m[0], named(len(seen), "~" in m[0][1:])), text)


def named(n, on_demand):
    return f"~0mwqs9d{n:02d}" + (f"~4r8sa7l42tl{n:02d}" if on_demand else "")


CLOCK = re.compile(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d|(?:in )?(?:\d+(?:\.\d+)?(?:ms|µs|d|h|m|s))+(?: ago)?|\(now\)|now|after")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def compared(text):
    """What must stay: words and their order, not times and widths."""
    text = RUN.sub("~", ESCAPES.sub("", text))
    text = re.sub(r"(?m)^\d\d:\d\d:\d\d .*\n", "", text)  # what a wait tells hangs on when it looked
    text = re.sub(r"(attempts spent: ex).*", r"\1", CLOCK.sub("", text))  # cut where the ages leave room
    return re.sub(r"[\s()]+", " ", text)


def drawn(text):
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
    # The font would be fetched from another host; any of the reader's own will do.
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S).replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    return console.export_svg(title="belfry", code_format=form, unique_id="belfry")


def screens():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (pathlib.Path(folder) / name).write_text(text)
        env = {**os.environ, "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}", "TERM": "xterm-256color", "TZ": "UTC",
               "BELFRY_CONFIG": os.path.join(folder, "config.toml")}
        for name in ("NO_COLOR", "BELFRY_TOKEN"):
            env.pop(name, None)
        server = subprocess.Popen(["belfry", "dev", "--allow-exec", "--listen", "127.0.0.1:0", "--output", "json", "--log-level", "error"],
                                  cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
        try:
            decoder, said = json.JSONDecoder(), ""
            while True:
                line = server.stdout.readline()
                if not line:
                    sys.exit("belfry dev did not start")
                said += line
                try:
                    env["BELFRY_ADDRESS"] = decoder.decode(said)["address"]
                    break
                except json.JSONDecodeError:
                    continue
            for command in BEFORE:
                on_terminal(command, folder, env)
            began = datetime.datetime.now(datetime.timezone.utc).date()
            for name, commands in SHOWN.items():
                shown = ""
                for command in commands:
                    shown += f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m\n{on_terminal(command, folder, env)}\n"
                yield name, as_of_one_day(shown, began)
        finally:
            server.terminate()
            server.wait(timeout=30)


def main():
    check = sys.argv[1:] == ["--check"]
    SCREENS.mkdir(exist_ok=True)
    stale = []
    for name, text in screens():
        svg, words = SCREENS / f"{name}.svg", SCREENS / f"{name}.txt"
        plain = ESCAPES.sub("", text)
        if svg.exists() and words.exists() and compared(words.read_text()) == compared(plain):
            continue  # but for times and durations
        if check:
            stale.append(f"docs/screens/{name}.svg is not what belfry shows:\n{plain}")
        else:
            svg.write_text(drawn(text) + "\n")
            words.write_text(plain)
    if stale:
        sys.exit("\n".join(stale) + "make generate draws them again.")


if __name__ == "__main__":
    main()
