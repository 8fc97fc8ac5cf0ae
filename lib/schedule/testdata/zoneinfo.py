"""Writes lib/schedule/zoneinfo.zip: the file that Go distributes, whose entries are stored as they are, with its entries deflated.

    python3 lib/schedule/testdata/zoneinfo.py "$(go env GOROOT)/lib/time/zoneinfo.zip" lib/schedule/zoneinfo.zip
"""
import sys
import zipfile

source, target = sys.argv[1:]
with zipfile.ZipFile(source) as stored, zipfile.ZipFile(target, "w") as deflated:
    for name in stored.namelist():
        deflated.writestr(zipfile.ZipInfo(name), stored.read(name), zipfile.ZIP_DEFLATED, 9)
