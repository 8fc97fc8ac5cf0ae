"""Writes lib/schedule/zoneinfo.gz of the zones that Go distributes.

    python3 lib/schedule/testdata/zones.py "$(go env GOROOT)/lib/time/zoneinfo.zip" lib/schedule/zoneinfo.gz

Unpacked, it has a line for each zone, with its name and where its data begin and how long they are, in bytes; an empty line; and the
data. Many names are other names of a zone, and have its data.
"""
import gzip
import sys
import zipfile

source, target = sys.argv[1:]
index, data, seen = [], b"", {}
with zipfile.ZipFile(source) as archive:
    for name in archive.namelist():
        # Factory is the database's mark of a host whose zone was never set, not a place.
        if name.endswith("/") or name == "Factory":
            continue
        zone = archive.read(name)
        if zone not in seen:
            seen[zone] = len(data)
            data += zone
        index.append(f"{name} {seen[zone]} {len(zone)}\n")
with open(target, "wb") as file:
    file.write(gzip.compress("".join(index).encode() + b"\n" + data, 9, mtime=0))
