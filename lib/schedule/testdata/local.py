"""Writes local.txt: what Python's zoneinfo has for local times around the changes of all clocks, 2016 to 2036.

    python3 lib/schedule/testdata/local.py > lib/schedule/testdata/local.txt

Python reads the zones of lib/schedule/zoneinfo.gz, so that no release of the database on any machine matters. For each change of
a zone's offset there are five local times: one second before the hours that do not exist or exist twice, the first, middle and last
second of them, and the first after. The right instant is the earliest that shows the local time; where none does, the change itself.
A line has a zone, the number of its times, the beginning of the SHA-256 of all of them, and a few of them as they stand.
"""
import gzip
import hashlib
import io
import pathlib
import zoneinfo
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1)
FIRST, LAST = (int((datetime(year, 1, 1) - EPOCH).total_seconds()) for year in (2016, 2037))
STEP = 6 * 3600


def offset(zone, u):
    return int(datetime.fromtimestamp(u, zone).utcoffset().total_seconds())


def changes(zone):
    u, before = FIRST, offset(zone, FIRST)
    while u < LAST:
        if offset(zone, u + STEP) != before:
            low, high = u, u + STEP
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            after = offset(zone, high)
            yield high, before, after
            before, u = after, high
            continue
        u += STEP


def instant(zone, wall, change):
    found = []
    for fold in (0, 1):
        local = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=zone, fold=fold)
        u = int((local.astimezone(timezone.utc).replace(tzinfo=None) - EPOCH).total_seconds())
        if u + offset(zone, u) == wall:
            found.append(u)
    return min(found) if found else change


index, data = gzip.decompress((pathlib.Path(__file__).parent.parent / "zoneinfo.gz").read_bytes()).split(b"\n\n", 1)
for line in sorted(index.decode().splitlines()):
    name, begin, size = line.split()
    zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(data[int(begin) :][: int(size)]), key=name)
    rows = []
    for change, before, after in changes(zone):
        low, high = change + min(before, after), change + max(before, after)
        for wall in (low - 1, low, (low + high) // 2, high - 1, high):
            rows.append(f"{(EPOCH + timedelta(seconds=wall)).isoformat()}={instant(zone, wall, change)}")
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
    shown = " ".join(rows[i] for i in sorted({len(rows) * k // 14 // 5 * 5 + 2 for k in (1, 7, 13)})) if rows else ""
    print(f"{name} {len(rows)} {digest} {shown}".rstrip())
