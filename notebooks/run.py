#!/usr/bin/env python3
"""Runs the notebooks from their first cell to their last.

    run.py            and stores the outputs
    run.py --check    and fails where a stored text is not what comes out now

Pictures are not compared, nor the outputs of cells tagged "varies" (what depends on what is
installed). Times and rates are compared without their numbers: "1.25 ms" is "# ms".
"""
import difflib
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NEEDED = "apt install jupyter-nbconvert python3-ipykernel python3-matplotlib"
NUMBER = re.compile(r"[0-9.]+(?= (ms|us|GB/s|times)\b)")


def executed(path):
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(
        notebook, {"metadata": {"path": HERE}})
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python",
                                        "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {}
        for output in cell.get("outputs", []):
            if "data" in output:
                output["metadata"] = {}
                output["data"].pop("text/plain", None)
    return notebook


def texts(notebook):
    """A list of lines for each cell whose text is compared."""
    lines = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if "varies" in cell.metadata.get("tags", []):
                continue
            text = output.get("text", "") or "\n".join(output.get("data", {}))
            lines += [f"cell {number}: " + NUMBER.sub("#", line) for line in text.splitlines()]
    return lines


def says_where(notebook):
    """Whether an output names a path of this machine."""
    root = os.path.dirname(HERE)
    return any(place in str(cell.get("outputs", "")) for cell in notebook.cells
               for place in (root, os.path.expanduser("~"), "/tmp/"))


def main(arguments):
    try:
        import IPython, ipykernel, matplotlib, nbconvert  # noqa: F401, E401
    except ImportError as missing:
        print(f"notebooks: skipped, {missing.name} is missing: {NEEDED}")
        return 0
    import nbformat
    from nbconvert.preprocessors import CellExecutionError

    failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "*.ipynb"))):
        name = os.path.basename(path)
        stored = texts(nbformat.read(path, as_version=4))
        try:
            notebook = executed(path)
        except CellExecutionError as error:
            print(f"notebooks/{name}: a cell fails\n{error}")
            failed = 1
            continue
        if says_where(notebook):
            print(f"notebooks/{name}: an output names a path of this machine")
            failed = 1
        if "--check" not in arguments:
            with open(path, "w", encoding="utf-8") as file:
                nbformat.write(notebook, file)
            continue
        different = list(difflib.unified_diff(stored, texts(notebook), "stored", "now",
                                              lineterm="", n=1))
        print(f"notebooks/{name}: "
              + ("other output; make notebooks stores it" if different else "the same"))
        print("".join(line + "\n" for line in different), end="")
        failed = failed or bool(different)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
