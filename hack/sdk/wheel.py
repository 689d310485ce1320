#!/usr/bin/env python3
"""Packs the Python library as a wheel, with the standard library alone, and prints its path.

    wheel.py sdk/python FOLDER

What it writes follows from the files alone: the same files give the same bytes.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path


def pack(source: Path, out: Path) -> Path:
    """Writes the wheel of the project in source into the folder out."""
    project = dict(re.findall(r'^([a-z-]+) = "(.+)"$', (source / "pyproject.toml").read_text(), re.MULTILINE))
    name = project["name"]
    version = re.search(r'__version__ = "(.+)"', (source / name / "client.py").read_text())[1]
    info = f"{name}-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    modules = [*(source / name).glob("*.py"), source / name / "py.typed"]
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(modules)}
    files[f"{info}/METADATA"] = "\n".join([*metadata, ""]).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: phoneproof\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = make_record(files, f"{info}/RECORD").encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)  # of 1980
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return wheel


def make_record(files: dict[str, bytes], record: str) -> str:
    """Returns the list of the files with their digests and sizes."""
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{record},,\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: wheel.py sdk/python FOLDER")
    print(pack(Path(sys.argv[1]), Path(sys.argv[2])))
