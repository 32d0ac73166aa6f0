"""People's documents: from the bytes of a file to passages of archival storage.

kinds     what can be read, by a file's ending, and whether its first bytes bear the ending out
blocks    what every reader gives: headings, paragraphs and rows of tables, with their pages; and why a file is not read
plain     text, Markdown, tables in text, e-mail
markup    HTML and EPUB
office    DOCX, PPTX, XLSX
pdf       PDF
parsing   the process that reads one file, with its limits; the only module that runs a parser
reading   starts that process and takes in what it tells
chunks    blocks into chunks of a size that a search can show whole
intake    the loop that fetches uploads, has them read, stores them and tells their agents
"""
