# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors
"""build.py ROOT SITE: the pages of the site. scripts/docs runs it, behind doxygen.

The pages of ROOT become HTML by cmark-gfm, their headings get the anchors of GitHub, and links between pages
lead to the HTML. Files that are linked but are no pages, such as examples, become pages that show them. Each
room of rooms.txt gets a page with all its public entities, from doxygen's XML in SITE/api/xml, each with a link to an
example or a test that uses it. Doxygen's pages get the frame of the others. search.html finds sections, entities
and the tasks of docs/tasks.md by an index in search-index.js, without a server.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

root, site = Path(sys.argv[1]), Path(sys.argv[2])
menu = [
    ("index.html", "Heddle"),
    ("docs/tasks.html", "Tasks"),
    ("docs/guide.html", "Guide"),
    ("docs/from_mpi.html", "From MPI"),
    ("docs/from_torch.html", "From torch"),
    ("docs/from_taskflow.html", "From Taskflow"),
    ("docs/gallery.html", "Gallery"),
    ("explorer.html", "Explorer"),
    ("docs/systems.html", "Systems"),
    ("docs/benchmarks.html", "Benchmarks"),
    ("docs/decisions/README.html", "Decisions"),
    ("rooms.html", "API"),
]
has_explorer = (site / "explorer.html").exists()


def frame(name):
    """The head and the menu of the page `name` of the site."""
    up = "../" * name.count("/")
    links = []
    for target, label in menu:
        if target == "explorer.html" and not has_explorer:
            continue
        here = ' aria-current="page"' if target == name else ""
        links.append(f'<a href="{up}{target}"{here}>{label}</a>')
    search = (f'<form role="search" action="{up}search.html"><input type="search" name="q" aria-label="Search" '
              'placeholder="Search"></form>')
    return (f'<link rel="stylesheet" href="{up}style.css">',
            f'<nav class="site" aria-label="Site">{" ".join(links)} {search}</nav>')


def page(name, title, body, script=""):
    """Writes the page `name` of the site, with the menu."""
    style, nav = frame(name)
    out = site / name
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title>{style}</head>\n'
        f'<body>\n{nav}\n<main>\n{body}\n</main>\n{script}</body>\n</html>\n'
    )


def name_of(source):
    """The page that the file `source` of the repository becomes."""
    if source == "README.md":
        return "index.html"
    if source.endswith(".md"):
        return source[:-3] + ".html"
    return "files/" + source + ".html"


def slug(heading, seen):
    text = html.unescape(re.sub(r"<[^>]+>", "", heading)).lower()
    text = re.sub(r"[^\w -]", "", text).replace(" ", "-")
    seen[text] = seen.get(text, -1) + 1
    return text if seen[text] == 0 else f"{text}-{seen[text]}"


shown = {}  # files that pages link to
found = []  # what the search finds: [title, page, address, text, kind]


def text_of(part):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part)).split())


def index(name, title, body):
    """Makes the sections of a page, and the rows of the page of tasks, known to the search."""
    parts = re.split(r'(?=<h[1-4] id=")', body)
    for part in parts:
        heading = re.match(r'<h([1-4]) id="([^"]*)">(.*?)</h\1>', part, re.S)
        if heading:
            address = name if heading[1] == "1" else f"{name}#{heading[2]}"
            found.append([text_of(heading[3]), title, address, text_of(part[heading.end():])[:500], "section"])
    if name == "docs/tasks.html":
        for row in re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", body, re.S):
            there = re.search(r'href="([^"]*)"', row[3])[1]
            found.append([text_of(row[0]), "Tasks", os.path.normpath("docs/" + there), text_of(row[1] + " " + row[2]), "task"])


def contents(body):
    """The list of a page's sections, for pages with several."""
    heads = re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', body, re.S)
    if len(heads) < 4:
        return ""
    lines = "".join(f'<li><a href="#{anchor}">{re.sub("</?a[^>]*>", "", text)}</a></li>' for anchor, text in heads)
    return f'<nav class="contents" aria-label="On this page"><ul>{lines}</ul></nav>'


def convert(source):
    """The page of a Markdown file."""
    name = name_of(source)
    body = subprocess.run(
        ["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough", str(root / source)],
        check=True, capture_output=True, text=True).stdout
    seen = {}
    body = re.sub(r"<h([1-6])>(.*?)</h\1>",
                  lambda m: f'<h{m[1]} id="{slug(m[2], seen)}">{m[2]}</h{m[1]}>', body, flags=re.S)
    body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")

    # A picture of another site, such as a badge, becomes its description.
    body = re.sub(r'<img src="https?:[^>]*?alt="([^"]*)"[^>]*>', r"\1", body)

    def link(match):
        kind, target = match[1], html.unescape(match[2])
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match[0]
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if kind == "src" or path.endswith((".svg", ".png")):
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, site / path)
            there = path
        else:
            if not path.endswith(".md"):
                shown[path] = True
            there = name_of(path)
        there = os.path.relpath(there, os.path.dirname(name) or ".")
        return f'{kind}="{html.escape(there + ("#" + anchor if anchor else ""))}"'

    body = re.sub(r'\b(href|src)="([^"]*)"', link, body)
    title = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S)
    title = text_of(title[1]) if title else source
    index(name, title, body)
    after = re.search(r"</h1>", body)
    at = after.end() if after else 0
    page(name, title, body[:at] + contents(body[at:]) + body[at:])


def show(path):
    """The page of a file, or of a folder, with links to what is in it."""
    name, source = name_of(path), root / path
    title = f"<h1>{html.escape(path)}</h1>"
    if source.is_dir():
        entries = []
        for inside in sorted(source.iterdir()):
            below = os.path.join(path, inside.name)
            if inside.is_file():
                if below not in shown and not below.endswith(".md"):
                    shown[below] = True
                    show(below)
                there = os.path.relpath(name_of(below), os.path.dirname(name))
                if (site / name_of(below)).exists():
                    entries.append(f'<li><a href="{html.escape(there)}">{html.escape(inside.name)}</a></li>')
        page(name, path, f'{title}<ul>{"".join(entries)}</ul>')
    else:
        text = source.read_text(errors="replace")
        page(name, path, f"{title}<pre><code>{html.escape(text)}</code></pre>")


# --- Rooms.
def plain(node):
    return "" if node is None else " ".join("".join(node.itertext()).split())


def entities():
    """(header, sort, name, address, brief) of all public entities, as doxygen lists them."""
    for file in sorted((site / "api/xml").glob("*.xml")):
        compound = xml.parse(file).getroot().find("compounddef")
        if compound is None:
            continue
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        inside = re.sub(r"<.*", "", name).split("::")
        if {"impl", "internal"} & set(inside):
            continue
        if kind in ("class", "struct", "union", "concept"):
            address = compound.get("id") + ".html"
            place = compound.find("location")
            yield place.get("file"), kind, name, address, plain(compound.find("briefdescription"))
        elif kind in ("namespace", "file"):
            for member in compound.iter("memberdef"):
                if kind == "file" and member.get("kind") != "define":
                    continue
                own, _, anchor = member.get("id").rpartition("_1")
                full = member.findtext("name") if kind == "file" else name + "::" + member.findtext("name")
                yield (member.find("location").get("file"), member.get("kind"), full, f"{own}.html#{anchor}",
                       plain(member.find("briefdescription")))


def used_in():
    """For each word of the examples and tests, the file that shows it: an example rather than a test."""
    files = sorted(root.glob("examples/*/*.cpp")) + sorted(root.glob("tests/*/*.cpp")) + sorted(root.glob("tests/systems/*/*.cpp"))
    words = {}
    for file in files:
        if not file.parent.name.startswith("consume_"):
            for word in re.findall(r"\b[A-Za-z_]\w+\b(?=\s*[({<])", file.read_text(errors="replace")):
                words.setdefault(word, str(file.relative_to(root)))
    return words


def rooms():
    """The pages of the rooms, and the one that lists them."""
    shows = used_in()
    by_header = {}
    for header, kind, name, address, brief in entities():
        # The pages of undocumented members do not exist; all that is public is documented.
        if header and brief and (site / "api" / address.split("#")[0]).exists():
            by_header.setdefault(os.path.normpath(header), []).append((name, kind, address, brief))
    names = sorted({header.split("/")[0].removesuffix(".hpp") for header in by_header if "/" in header})
    listed = []
    for room in names:
        rows, count = [], 0
        for header in sorted(by_header):
            if header.split("/")[0].removesuffix(".hpp") != room:
                continue
            rows.append(f'<h2 id="{html.escape(header)}">&lt;heddle/{html.escape(header)}&gt;</h2>\n<dl>')
            for name, kind, address, brief in sorted(set(by_header[header])):
                file = shows.get(re.sub(r"<.*", "", name).split("::")[-1])
                example = ""
                if file:
                    shown[file] = True
                    example = f' <a href="../{html.escape(name_of(file))}">{html.escape(file.split("/", 1)[1])}</a>'
                rows.append(f'<dt><a href="../api/{address}">{html.escape(name)}</a> <small>{kind}</small></dt>'
                            f"<dd>{html.escape(brief)}{example}</dd>")
                found.append([name.removeprefix("heddle::"), f"<heddle/{header}>", f"api/{address}", brief, kind])
                count += 1
            rows.append("</dl>")
        page(f"rooms/{room}.html", f"Room {room}", f"<h1>{room}</h1>\n" + "\n".join(rows))
        listed.append(f'<li><a href="rooms/{room}.html">{room}</a>: {count} entities</li>')
    page("rooms.html", "API", "<h1>API by room</h1>\n<p>A room is a folder of headers. The <a href=\"docs/design.html\">"
         "design</a> says what each is for.</p>\n<ul>" + "\n".join(listed) + "</ul>\n"
         '<p>All by doxygen: <a href="api/annotated.html">classes</a>, <a href="api/files.html">headers</a>.</p>')


def unlink():
    """Makes text of doxygen's links to anchors that its pages lack, such as those of defaulted operators."""
    texts = {file.name: file.read_text(errors="replace") for file in (site / "api").glob("*.html")}
    ids = {name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in texts.items():
        def link(match):
            there = match[1] or name
            return match[0] if there not in ids or match[2] in ids[there] else match[3]

        changed = re.sub(r'<a [^>]*?href="([^"#:]*)#([^"]+)"[^>]*>(.*?)</a>', link, text)
        if changed != text:
            (site / "api" / name).write_text(changed)


def in_frame():
    """Gives doxygen's pages the menu of the site and its colours."""
    style, nav = frame("api/x.html")
    for file in (site / "api").glob("*.html"):
        text = file.read_text(errors="replace")
        text = text.replace("</head>", f'<meta name="color-scheme" content="light dark">{style}</head>', 1)
        text = re.sub(r"<body([^>]*)>", lambda m: f'<body class="api"{m[1]}>{nav}', text, count=1)
        file.write_text(text)


pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "packaging/README.md"]
pages += sorted(str(p.relative_to(root)) for p in (root / "docs").rglob("*.md"))
for source in pages:
    convert(source)
unlink()
rooms()
in_frame()
for path in list(shown):
    show(path)
page("search.html", "Search", '<h1>Search</h1>\n<p id="count" role="status">Write words into the field above.</p>\n<ol id="results"></ol>',
     '<script src="search-index.js"></script><script src="search.js"></script>\n')
(site / "search-index.js").write_text("const entries = " + json.dumps(found, separators=(",", ":")).replace("],[", "],\n[") + ";\n")
for name in ("style.css", "search.js"):
    shutil.copy(root / "docs/site" / name, site / name)
