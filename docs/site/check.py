# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors
"""check.py ROOT SITE: is the site that scripts/docs built whole?

Every link of every page leads to a file of the site and, behind a #, to an id in it, and no page loads
anything from elsewhere. Every public entity that the headers of a room declare, as their text says, is linked
on the page of the room. One line per offence, status 1 where there is any.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

root, site = Path(sys.argv[1]), Path(sys.argv[2])
faults = []


class Page(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("id", "name") and value:
                self.ids.add(value)
            if key == "href" and tag in ("a", "area") and value:
                self.links.append(value)
            if value and (key == "src" or (key == "href" and tag == "link")):
                self.loads.append(value)


pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
links = 0
for path, page in pages.items():
    for link in page.links + page.loads:
        if re.match(r"(https?|mailto|data|javascript|blob):", link):
            if link in page.loads and link.startswith("http"):
                faults.append(f"{path.relative_to(site)}: loads {link}")
            continue
        links += 1
        target, _, anchor = unquote(link).partition("#")
        there = (path.parent / target).resolve() if target else path
        if not there.exists():
            faults.append(f"{path.relative_to(site)}: there is no {link}")
        elif anchor and there in pages and anchor not in pages[there].ids:
            faults.append(f"{path.relative_to(site)}: {target} has no #{anchor}")


def declared(header):
    """The names that a header declares with a docstring, in its first column and outside of impl."""
    inside, documented = False, False
    for line in header.read_text().split("\n"):
        if re.match(r"namespace (heddle::inline v0::)?(\w+::)*impl\b", line):
            inside = True
        elif re.match(r"}  // namespace (heddle::inline v0::)?(\w+::)*impl\b", line):
            inside = False
        if line.startswith("///") and not line.startswith("/// @file"):
            documented = True
            continue
        if not documented or inside or line.startswith(("template <", "requires", " ", "#", "[[nodiscard]]\n")):
            if line == "":
                documented = False
            continue
        documented = False
        words = re.match(r"(?:enum class|class|struct|union|concept|using) (?:\[\[\w+\]\] |alignas\(\w+\) )?(\w+)\b( *<)?", line)
        if words:
            if not words[2]:  # a specialisation has the page of its template
                yield words[1]
            continue
        constant = re.match(r"inline constexpr [^=({]*?\b(\w+)(?:\[\])?(?: =.*|\{.*|;)?$", line)
        if constant:
            yield constant[1]
            continue
        plain = re.sub(r"\[\[.*?\]\] ?|\boperator\b.*", "", line)
        while plain != (shorter := re.sub(r"<[^<>]*>", "", plain)):  # arguments may be types of functions
            plain = shorter
        call = re.match(r"[\w\[].*?\b(\w+)\(", plain)
        if call and not re.search(r"deduction|\) ->", line) and call[1] not in ("decltype", "noexcept"):
            yield call[1]


count = 0
headers = root / "include/heddle"
for umbrella in sorted(headers.glob("*.hpp")):
    room = umbrella.stem
    if not (headers / room).is_dir():
        continue
    page = site / "rooms" / f"{room}.html"
    if not page.exists():
        faults.append(f"the room {room} has no page")
        continue
    linked = set(re.findall(r'<a href="\.\./api/[^"]*">(?:[^<]*::)?([A-Za-z_]\w*)(?:&lt;[^<]*)?</a>', page.read_text()))
    for header in sorted((headers / room).rglob("*.hpp")):
        if {"impl", "internal"} & set(header.parts):
            continue
        for name in declared(header):
            count += 1
            if name not in linked:
                faults.append(f"rooms/{room}.html lacks {name} of {header.relative_to(headers)}")

if count == 0 or len(pages) < 100:
    faults.append(f"{len(pages)} pages, {count} entities: too few to be the site")
print("\n".join(faults))
print(f"{len(pages)} pages, {links} links, {count} public entities of the headers, {len(faults)} faults")
sys.exit(bool(faults))
