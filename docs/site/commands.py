"""A page for each manual page. Run by scripts/site."""
import pathlib
import re
import subprocess
import sys


def main():
    manuals, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True)
    names = []
    for path in sorted(manuals.glob("*.1"), key=lambda path: (path.stem != "cdacq", path.stem)):
        command = ["mandoc", "-T", "html", "-O", "fragment", path]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        text = re.sub(r'(?s)<table class="(?:head|foot)">.*?</table>', "", text)
        text = re.sub(r"<(/?)h1", r"<\1h2", text)  # the page has a title
        page = f"# {path.stem.replace('-', ' ', 1)}\n\n```{{raw}} html\n{text}\n```\n"
        (out / f"{path.stem}.md").write_text(page, encoding="utf-8")
        names.append(path.stem)
    index = "# Commands\n\nThe manual pages: `man cdacq` and `man cdacq-report` show the same.\n\n"
    (out / "index.md").write_text(index + "```{toctree}\n" + "\n".join(names) + "\n```\n", encoding="utf-8")


if __name__ == "__main__":
    main()
