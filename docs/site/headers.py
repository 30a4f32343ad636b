"""Pages from the public headers: each comment with the declaration that it precedes. Run by scripts/site."""
import pathlib
import re
import sys


def project_version(cmake):
    return re.search(r"project\(cdacq\s+VERSION\s+([\d.]+)", cmake)[1]


def text_of(comment):
    """The text of a comment as paragraphs of Markdown. An indented part stays as it is."""
    lines = re.sub(r"^/\*+|\*/$", "", comment.strip()).splitlines()
    lines = [re.sub(r"^ ?\* ?", "", line) if i else line.strip() for i, line in enumerate(lines)]
    paragraphs = "\n".join(line.rstrip() for line in lines).strip("\n")
    return re.sub(r"<(?=[\w/])", r"\\<", paragraphs)


def name_of(declaration):
    """What a chunk declares: a struct, an enum, a macro or a function. None: nothing to show."""
    for pattern in (r"^(?:struct|enum) (\w+) \{", r"^#define (\w+)", r"\b(cdacq_\w+)\(", r"^(?:struct|enum) (\w+);"):
        found = re.search(pattern, declaration, re.M)
        if found:
            return found[1]
    return None


def chunks(text):
    """Comments and declarations, apart from what C needs around them."""
    text = re.sub(r"(?m)^#(?:ifndef|define|endif|ifdef|include|if|else).*(?:_H\b|__cplusplus|<|\").*\n", "", text)
    text = re.sub(r"(?m)^(?:CDACQ_BEGIN_DECLS|CDACQ_END_DECLS|#endif)\n", "", text)
    for chunk in re.split(r"\n\s*\n(?=\S)", text):
        found = re.match(r"\s*(/\*.*?\*/)?\s*(.*)", chunk, re.S)
        if found[1] or found[2].strip():
            yield found[1] or "", found[2].strip("\n")


def page(path):
    out = []
    for comment, declaration in chunks(path.read_text(encoding="utf-8")):
        section = re.match(r"/\* -+ (.+?) -+ \*/$", comment)
        if section and not declaration:
            out.append(f"## {section[1]}")
            continue
        if not out:
            title, _, rest = text_of(comment).partition(":")
            out.append(f"# {title.strip()}\n\n{rest.strip()[:1].upper()}{rest.strip()[1:]}")
            comment = ""
        name = name_of(declaration)
        if name:
            out.append(f"### `{name}`")
        if comment:
            out.append(text_of(comment))
        if declaration:
            out.append(f"```c\n{declaration}\n```")
    return "\n\n".join(out) + "\n"


def main():
    include, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True)
    names = []
    for path in sorted((include / "cdacq").glob("*.h")):
        (out / f"{path.stem}.md").write_text(page(path), encoding="utf-8")
        names.append(path.stem)
    index = "# The C API\n\nOne page for each header. [The overview](../api.md) says which handle a call takes.\n\n"
    (out / "index.md").write_text(index + "```{toctree}\n" + "\n".join(names) + "\n```\n", encoding="utf-8")


if __name__ == "__main__":
    main()
