"""%%cpp: a notebook cell of real C++, built with g++ against this repository and run.

    %%cpp                  a program, or the body of main(); what it prints is the output
    %%cpp softmax.graph    the same, and what it prints is kept in that file
    %%cpp keep             declarations that the cells below begin with; not run

Cells run in build/notebooks. A program is kept under the hash of its text, so that a cell that was
run before does not wait for g++. Output that is SVG is shown as a picture, PNG.
"""
import hashlib
import importlib.util
import os
import subprocess

from IPython.core.magic import register_cell_magic

from show_svg import show_svg

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.join(ROOT, "build", "notebooks")
CXX = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-O1", "-fopenmp", "-ffp-contract=off", "-I" + ROOT]
LIBRARY = os.path.join(ROOT, "build", "libtiny_compile.a")
BEGIN = ("#include <tiny_compile/tiny_compile.h>\n#include <cstdio>\n#include <iostream>\n"
         "namespace tc = tiny_compile;\nusing std::cout;\n")
os.environ["TC_CACHE_DIR"] = os.path.join(HERE, "kernels")
os.makedirs(HERE, exist_ok=True)
kept = []

# NVRTC as pip installs it, where it is not installed otherwise.
nvrtc = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvrtc")
for folder in nvrtc.submodule_search_locations if nvrtc else []:
    known = os.environ.get("LD_LIBRARY_PATH", "")
    os.environ["LD_LIBRARY_PATH"] = os.path.join(folder, "lib") + (":" + known if known else "")


class Failed(Exception):
    def _render_traceback_(self):  # IPython: the message, not the way to it
        return [str(self)]


def run(words, text=None):
    """What a program prints; its complaint, without this machine's paths, as an error."""
    ran = subprocess.run(words, input=text, cwd=HERE, capture_output=True, text=True)
    if ran.returncode:
        raise Failed((ran.stderr or ran.stdout).replace(ROOT + "/", ""))
    return ran.stdout


def show(out):
    if out.startswith("<svg"):
        show_svg(out)
    else:
        print(out, end="" if out.endswith("\n") else "\n")


def build(text):
    key = hashlib.sha256((CXX + str(FLAGS) + text).encode())
    with open(LIBRARY, "rb") as library:
        key.update(library.read())
    program = os.path.join(HERE, "cell_" + key.hexdigest()[:16])
    if not os.path.exists(program):
        run([CXX, *FLAGS, "-x", "c++", "-", "-x", "none", LIBRARY, "-ldl", "-o", program], text)
    return program


@register_cell_magic
def cpp(line, cell):
    if line.strip() == "keep":
        kept.append(cell)
        return
    body = '#line 2 "cell"\n' + cell  # the magic is line 1
    whole = body if "int main(" in cell else "int main() {\n" + body + "\n}\n"
    out = run([build("\n".join([BEGIN, *kept, whole]))])
    show(out)
    if line.strip():
        with open(os.path.join(HERE, line.strip()), "w") as file:
            file.write(out)


def tc(words, between=None):
    """build/tc with these words. `between`: only the text from the first to the last of two."""
    out = run([os.path.join(ROOT, "build", "tc"), *words.split()])
    if between:
        start = out.index(between[0])
        out = out[start:out.index(between[1], start) + len(between[1])]
    show(out)
