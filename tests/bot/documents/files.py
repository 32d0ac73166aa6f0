"""Files made by the tests: good ones of every kind, and some forty that are broken, hostile or not what they say. None is copied."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence

from bot.documents.blocks import Fault

OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_DRAWN = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha">{}]>'.format(
    "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True))
)
SECRET = "file:///etc/passwd"


def package(parts: Mapping[str, str | bytes]) -> bytes:
    """A zipped package of these parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(body: str, **more: str | bytes) -> bytes:
    """A Word file with this body; `more` parts by their names."""
    styles = f'<w:styles {_WORD}><w:style w:styleId="Ueberschrift1"><w:name w:val="heading 1"/></w:style></w:styles>'
    document = f"<w:document {_WORD}><w:body>{body}</w:body></w:document>"
    return package({"[Content_Types].xml": "<Types/>", "word/document.xml": document, "word/styles.xml": styles, **more})


def said(text: str, style: str = "") -> str:
    """A paragraph of Word's."""
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{styled}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(slides: Sequence[tuple[str, str]], **more: str | bytes) -> bytes:
    """Slides by title and text."""

    def shape(kind: str, text: str) -> str:
        holder = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
        return f"<p:sp>{holder}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    pages = {
        f"ppt/slides/slide{number}.xml": f"<p:sld {_DRAWN}><p:cSld><p:spTree>{shape('title', title)}{shape('', text)}</p:spTree></p:cSld></p:sld>"
        for number, (title, text) in enumerate(slides, 1)
    }
    return package({"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": "<p/>", **pages, **more})


def xlsx(rows: Sequence[Sequence[object]], title: str = "Prices") -> bytes:
    """One sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = title
    for row in rows:
        book.active.append(list(row))
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def epub(chapters: Sequence[str], **more: str | bytes) -> bytes:
    """A book of these chapters, each the body of a page."""
    names = [f"c{number}.xhtml" for number, _ in enumerate(chapters)]
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    return package(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b/book.opf"/></rootfiles></container>',
            "b/book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"b/{name}": f"<html><body>{text}</body></html>" for name, text in zip(names, chapters, strict=True)},
            **more,
        }
    )


def pdf(pages: Sequence[str], contents: Sequence[tuple[str, int]] = ()) -> bytes:
    """Pages of one line of text each; `contents`: titles with the pages they stand on."""
    objects = [
        "<</Type/Catalog/Pages 2 0 R%s>>" % ("/Outlines 4 0 R" if contents else ""),
        "",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    outlines = len(objects)
    objects += [""] * (1 + len(contents)) if contents else []
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
        resources = "/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{resources}/Contents {len(objects)} 0 R>>")
        kids.append(len(objects))
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(f'{kid} 0 R' for kid in kids)}]>>"
    if contents:
        first, last = outlines + 2, outlines + 1 + len(contents)
        objects[outlines] = f"<</Type/Outlines/First {first} 0 R/Last {last} 0 R/Count {len(contents)}>>"
        for number, (title, page) in enumerate(contents):
            following = f"/Next {first + number + 1} 0 R" if number + 1 < len(contents) else ""
            objects[outlines + 1 + number] = (
                f"<</Title({title})/Parent {first - 1} 0 R{following}/Dest[{kids[page - 1]} 0 R/Fit]>>"
            )
    made, places = bytearray(b"%PDF-1.7\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{each}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    root = f"trailer<</Root 1 0 R/Size {len(objects) + 1}>>\nstartxref\n{len(made)}\n%%EOF\n"
    return bytes(made) + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{root}".encode()


def locked_pdf() -> bytes:
    """With a password that nobody knows here."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(["A secret."]))))
    writer.encrypt("correct horse", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def locked_package() -> bytes:
    """A Word file in whose directory every part is marked as encrypted."""
    made = bytearray(docx(said("A secret.")))
    at = 0
    while (at := made.find(b"PK\x01\x02", at)) >= 0:
        made[at + 8] |= 1
        at += 4
    return bytes(made)


def bomb(member: str, size: int) -> bytes:
    """A Word file with a part of so many bytes of nothing."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"<w:document {_WORD}><w:body>{said('A note.')}</w:body></w:document>")
        with archive.open(member, "w", force_zip64=True) as part:
            for _ in range(size // 1_000_000):
                part.write(bytes(1_000_000))
    return made.getvalue()


def lying_package() -> bytes:
    """A Word file whose directory says that its largest part is small."""
    made = bytearray(bomb("word/styles.xml", 40_000_000))
    at = made.rfind(b"PK\x01\x02", 0, made.rfind(b"word/styles.xml"))
    struct.pack_into("<I", made, at + 24, 100)
    return bytes(made)


def overlapping_package() -> bytes:
    """A package in whose directory one part stands 25,000 times."""
    whole = package({"word/document.xml": "<x/>"})
    start = whole.find(b"PK\x01\x02")
    end = whole.find(b"PK\x05\x06")
    entry = whole[start:end]
    many = 25_000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, many, many, len(entry) * many, start, 0)
    return whole[:start] + entry * many + tail


def pdf_bomb() -> bytes:
    """A page whose packed content would fill the memory."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(1_500)) + packer.flush()
    made = pdf([""])
    return made.replace(
        b"<</Length 0>>stream\n\nendstream", b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)
    )


def circular_pdf() -> bytes:
    """Its tree of pages contains itself."""
    return pdf(["A page."]).replace(b"/Kids[5 0 R]", b"/Kids[2 0 R]")


def sheet_bomb() -> bytes:
    """A sheet that says it has seventeen thousand million cells, with one in its last corner."""
    rows = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>corner</t></is></c></row>'
    return _sheet(f'<dimension ref="A1:XFD1048576"/><sheetData>{rows}</sheetData>')


def _sheet(content: str, declared: str = "") -> bytes:
    """A workbook of one sheet, whose XML is given."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    of_package = "http://schemas.openxmlformats.org/package/2006"
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"

    def related(kind: str, target: str) -> str:
        relation = f'<Relationship Id="r1" Type="{relations}/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{of_package}/relationships">{relation}</Relationships>'

    return package(
        {
            "[Content_Types].xml": f'<Types xmlns="{of_package}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
            "_rels/.rels": related("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook {main} xmlns:r="{relations}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": related("worksheet", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f"{declared}<worksheet {main}>{content}</worksheet>",
        }
    )


def _docx_with(document: str) -> bytes:
    return package({"[Content_Types].xml": "<Types/>", "word/document.xml": document})


HOSTILE: Mapping[str, tuple[str, Callable[[], bytes], Fault]] = {
    # what it is: its name, its bytes, and why it is not read
    "nothing": ("empty.txt", lambda: b"", "no_text"),
    "blanks": ("blank.md", lambda: b" \n\n\t\n", "no_text"),
    "zeros": ("zeros.csv", lambda: bytes(1000), "no_text"),
    "no ending": ("README", lambda: b"Hello", "unknown"),
    "a program": ("setup.exe", lambda: b"MZ\x90\x00", "unknown"),
    "a picture": ("scan.png", lambda: b"\x89PNG\r\n\x1a\n", "unknown"),
    "an archive": ("all.zip", lambda: package({"a.txt": "a"}), "unknown"),
    "an old Word file": ("old.doc", lambda: OLD_OFFICE + bytes(600), "unknown"),
    "a double ending": ("report.pdf.exe", lambda: pdf(["x"]), "unknown"),
    "a Word file with macros by its ending": ("report.docm", lambda: docx(said("x")), "macros"),
    "a sheet with macros by its ending": ("sheet.xlsm", lambda: xlsx([["x"]]), "macros"),
    "a Word file with hidden macros": ("report.docx", lambda: docx(said("x"), **{"word/vbaProject.bin": b"code"}), "macros"),
    "slides with hidden macros": ("talk.pptx", lambda: pptx([("a", "b")], **{"ppt/vbaProject.bin": b"code"}), "macros"),
    "a PDF called Word": ("report.docx", lambda: pdf(["Hello"]), "wrong_ending"),
    "a Word file called PDF": ("report.pdf", lambda: docx(said("x")), "wrong_ending"),
    "a Word file called a sheet": ("report.xlsx", lambda: docx(said("x")), "wrong_ending"),
    "a book called slides": ("talk.pptx", lambda: epub(["<p>x</p>"]), "wrong_ending"),
    "a picture called text": ("note.txt", lambda: b"\x89PNG\r\n\x1a\n" + bytes(50), "wrong_ending"),
    "a program called a page": ("page.html", lambda: b"\x7fELF" + bytes(50), "wrong_ending"),
    "text with zeros": ("note.md", lambda: b"Hello\x00world", "wrong_ending"),
    "an old Word file called a new one": ("old.docx", lambda: OLD_OFFICE + bytes(600), "wrong_ending"),
    "a locked Word file": ("locked.docx", lambda: OLD_OFFICE + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
    "a locked package": ("locked.docx", locked_package, "encrypted"),
    "a locked PDF": ("locked.pdf", locked_pdf, "encrypted"),
    "a book with locked chapters": (
        "locked.epub",
        lambda: epub(
            ["<p>x</p>"],
            **{"META-INF/encryption.xml": '<encryption xmlns:e="urn:e"><e:CipherReference URI="b/c0.xhtml"/></encryption>'},
        ),
        "encrypted",
    ),
    "half a PDF": ("half.pdf", lambda: pdf(["Hello", "world"])[:60], "broken"),
    "a PDF of its first line": ("stub.pdf", lambda: b"%PDF-1.7\n" + b"x" * 400, "broken"),
    "a PDF with pages in a circle": ("circle.pdf", circular_pdf, "broken"),
    "half a Word file": ("half.docx", lambda: docx(said("x" * 5000))[:-40], "broken"),
    "a Word file with a torn part": ("torn.docx", lambda: _docx_with("<w:document><w:body>"), "broken"),
    "a package of nothing": ("empty.docx", lambda: package({}), "broken"),
    "a Word file without a document": ("none.docx", lambda: package({"other.txt": "x"}), "broken"),
    "a package whose bytes were changed": (
        "bad.docx",
        lambda: docx(said("x" * 5000)).replace(b"x\x9c", b"zz").replace(b"\x00\x00\x08\x00", b"\x00\x00\x09\x00"),
        "broken",
    ),
    "half a sheet": ("half.xlsx", lambda: xlsx([["x"] * 50] * 50)[:1500], "broken"),
    "a book without a table": ("none.epub", lambda: package({"mimetype": "application/epub+zip"}), "broken"),
    "a book without its chapters": (
        "gone.epub",
        lambda: package({"META-INF/container.xml": "<c><rootfile full-path='no.opf'/></c>"}),
        "broken",
    ),
    "mail without a head": ("odd.eml", lambda: b"just words\nwithout any header", "broken"),
    "a thousand million laughs in Word": (
        "laughs.docx",
        lambda: _docx_with(f"{_LAUGHS}<w:document {_WORD}><w:body>{said('&i;')}</w:body></w:document>"),
        "broken",
    ),
    "a thousand million laughs in a book": (
        "laughs.epub",
        lambda: package({"META-INF/container.xml": f"{_LAUGHS}<l>&i;</l>"}),
        "broken",
    ),
    "laughs in a sheet": ("laughs.xlsx", lambda: _sheet("<sheetData/>", _LAUGHS), "broken"),
    "a Word file that asks for another file": (
        "asks.docx",
        lambda: _docx_with(
            f'<!DOCTYPE d [<!ENTITY x SYSTEM "{SECRET}">]><w:document {_WORD}><w:body>{said("&x;")}</w:body></w:document>'
        ),
        "broken",
    ),
    "a Word file that asks for a definition": (
        "asks.docx",
        lambda: _docx_with(
            f'<!DOCTYPE d SYSTEM "http://127.0.0.1:9/d.dtd"><w:document {_WORD}><w:body>{said("x")}</w:body></w:document>'
        ),
        "broken",
    ),
    "deeply nested XML": ("deep.docx", lambda: _docx_with(f"<w:document {_WORD}>{'<w:p>' * 200_000}"), "broken"),
    "a page of scripts": (
        "page.html",
        lambda: b"<html><head><script>alert(1)</script></head><body><style>p{}</style></body></html>",
        "no_text",
    ),
    "a PDF of pictures": ("scan.pdf", lambda: pdf(["", "", ""]), "no_text"),
    "slides without a word": ("talk.pptx", lambda: pptx([("", "")]), "no_text"),
    "ten thousand pages": ("long.pdf", lambda: pdf(["x"] * 10_000), "too_many_pages"),
    "a zip bomb": ("bomb.docx", lambda: bomb("word/media/image1.png", 300_000_000), "too_much"),
    "a package with one part in it 25,000 times": ("many.docx", overlapping_package, "too_much"),
    "a package that lies about its size": ("lies.docx", lying_package, "broken"),
    "more text than anybody reads": ("long.txt", lambda: b"word and word. " * 800_000, "too_much"),
    "a sheet that is one long cell": ("long.csv", lambda: b'"' + b"x" * 300_000, "broken"),
    "a file beyond the limit": ("huge.txt", lambda: b"x" * 25_000_001, "too_large"),
}
