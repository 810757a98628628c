#!/usr/bin/env python3
"""Every family of generated kernels under NVIDIA's compute-sanitizer, on a machine with a GPU.

    make build/tc && python3 tests/fuzz/sanitize.py            all tools, a line each graph
    python3 tests/fuzz/sanitize.py racecheck                   one tool
    python3 tests/fuzz/sanitize.py --plain                     without one: only the bits
    python3 tests/fuzz/sanitize.py --json part.json            what was found, as a record has it

Each graph runs as `tc run --backend=cuda --against=interpreter`, so that a result that is wrong
under the tool alone shows as well; "calls of" a graph call it four times, so that a CUDA graph is
recorded and replayed. Exit code 1 when anything is not clean.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
TC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "tc")
SECONDS = 100  # a run that takes longer is stopped, which is said
SHOWN = 12     # lines of a report


def graph(inputs, *lines):
    """Lines of '%n: type = op ...'. Those marked '!' are results, else the last one is; '!%n' alone
    names an earlier one."""
    results = [line.split(":")[0].lstrip("!") for line in lines if line.startswith("!")]
    body = ["  " + line.lstrip("!") for line in lines if ":" in line]
    last = lines[-1].split(":")[0]
    return "\n".join([f"graph g({inputs}) {{", *body,
                      "  return " + ", ".join(results or [last]), "}", ""])


def reduced(op, dtype, rows, cols, axis):
    one = f"{rows},1" if axis else f"1,{cols}"
    result = "i64" if op == "argmax" else dtype
    return graph(f"%0 x: {dtype}[{rows},{cols}]",
                 f"%1: {result}[{one}] = {op} %0 {{axes=[{axis}], keepdim=1}}")


def softmax_lines(x, one, of=0, axis=1):
    """Of value `of`, the last one so far; its third last line is the sum."""
    ops = [(one, f"max %{of} {{axes=[{axis}], keepdim=1}}"), (x, f"expand %{of + 1}"),
           (x, f"sub %{of}, %{of + 2}"), (x, f"exp %{of + 3}"),
           (one, f"sum %{of + 4} {{axes=[{axis}], keepdim=1}}"), (x, f"expand %{of + 5}"),
           (x, f"div %{of + 4}, %{of + 6}")]
    return [f"%{of + 1 + k}: {type} = {op}" for k, (type, op) in enumerate(ops)]


def softmax(dtype, rows, cols, axis=1):
    x = f"{dtype}[{rows},{cols}]"
    one = f"{dtype}[{rows},1]" if axis else f"{dtype}[1,{cols}]"
    return graph(f"%0 x: {x}", *softmax_lines(x, one, axis=axis))


def log_softmax(dtype, rows, cols):
    """Rows that begin anywhere, read again."""
    x, one = f"{dtype}[{rows},{cols}]", f"{dtype}[{rows},1]"
    return graph(f"%0 x: {x}", f"%1: {one} = max %0 {{axes=[1], keepdim=1}}",
                 f"%2: {one} = sum_exp %0 {{axes=[1], keepdim=1}}", f"%3: {one} = log %2",
                 f"%4: {one} = add %1, %3", f"%5: {x} = expand %4", f"%6: {x} = sub %0, %5")


def less_its_place(rows, cols):
    """Each row less the place of its largest."""
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"%1: i64[{rows},1] = argmax %0 {{axes=[1], keepdim=1}}",
                 f"%2: f32[{rows},1] = cast %1", f"%3: {x} = expand %2", f"%4: {x} = sub %0, %3")


def turned_products(rows, cols):
    """The sum of each row, which is read once."""
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: f32[{cols},{rows}], %1 y: {x}", f"%2: {x} = permute %0 {{axes=[1,0]}}",
                 f"%3: {x} = mul %1, %2", f"%4: f32[{rows}] = sum %3 {{axes=[1]}}")


def turned_softmax(rows, cols):
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: f32[{cols},{rows}]", f"%1: {x} = permute %0 {{axes=[1,0]}}",
                 *softmax_lines(x, f"f32[{rows},1]", of=1))


def loss(rows, cols):
    """A loss a row and its gradient: one sum is behind both."""
    x, one = f"f32[{rows},{cols}]", f"f32[{rows},1]"
    return graph(f"%0 x: {x}", *softmax_lines(x, one), f"!%8: {one} = log %5", "!%7")


def normalised(dtype, rows, cols):
    """A row's deviation over the root of its squares' sum."""
    x, one = f"{dtype}[{rows},{cols}]", f"{dtype}[{rows},1]"
    return graph(f"%0 x: {x}", f"%1: {one} = sum %0 {{axes=[1], keepdim=1}}",
                 f"%2: {x} = expand %1", f"%3: {x} = sub %0, %2", f"%4: {x} = mul %3, %3",
                 f"%5: {one} = sum %4 {{axes=[1], keepdim=1}}", f"%6: {one} = rsqrt %5",
                 f"%7: {x} = expand %6", f"%8: {x} = mul %3, %7")


def folded(rows, cols):
    """A row's own sum and, in the same pass over memory, the columns' sums of what it led to."""
    x, one = f"f32[{rows},{cols}]", f"f32[{rows},1]"
    return graph(f"%0 x: {x}, %1 y: {x}", f"%2: {x} = mul %0, %1",
                 f"%3: {one} = sum %2 {{axes=[1], keepdim=1}}", f"%4: {x} = expand %3",
                 f"!%5: {x} = sub %0, %4", f"!%6: f32[{cols}] = sum %5 {{axes=[0]}}",
                 f"!%7: f32[{cols}] = sum %2 {{axes=[0]}}")


def pointwise(dtype, rows, cols):
    x = f"{dtype}[{rows},{cols}]"
    return graph(f"%0 x: {x}, %1 b: {dtype}[{cols}]", f"%2: {x} = expand %1",
                 f"%3: {x} = add %0, %2", f"!%4: {x} = gelu %3")


def scheduled_rows(dtype, rows, cols):
    """What the usual stages lay out, by a thread each row."""
    flat, each = f"i0*{cols} + j0", f"(j0: {cols})"
    x = f"cast<f32>(load x[{flat}])" if dtype != "f32" else f"load x[{flat}]"
    return "\n".join([
        "program g on cuda {", f"  input x: {dtype}[{rows * cols}]",
        f"  output y: f32[{rows * cols}]", f"  output s: f32[{rows}]", f"  output p: i64[{rows}]",
        f"  kernel k rows(i0: {rows}) {{", f"    r0: f32 = max{each} {x}",
        f"    r1: f32 = sum{each} exp(sub({x}, r0))", f"    r2: f32 = sum_exp{each} {x}",
        f"    r3: i64 = argmax{each} {x}",
        f"    store y[{flat}] for {each} = div(exp(sub({x}, r0)), r1)", "    store s[i0] = r2",
        "    store p[i0] = r3", "    schedule rows", "  }", "  launch k", "  return y, s, p", "}",
        ""])


def transposed(dtype, rows, cols):
    x, y = f"{dtype}[{rows},{cols}]", f"{dtype}[{cols},{rows}]"
    return graph(f"%0 x: {x}, %1 y: {y}", f"%2: {x} = permute %1 {{axes=[1,0]}}",
                 f"%3: {x} = add %0, %2", f"!%4: {x} = gelu %3")


def result_turned(dtype, rows, cols):
    x, b = f"{dtype}[{rows},{cols}]", f"{dtype}[{cols}]"
    return graph(f"%0 x: {x}, %1 b: {b}", f"%2: {x} = expand %1", f"%3: {x} = mul %0, %2",
                 f"%4: {x} = gelu %3", f"%5: {dtype}[{cols},{rows}] = permute %4 {{axes=[1,0]}}")


def running(dtype, rows, cols, axis=1):
    x = f"{dtype}[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"%1: {x} = exp %0", f"!%2: {x} = cumsum %1 {{axis={axis}}}", "!%1")


def running_turned(rows, cols):
    """Of columns; their sums as rows."""
    x, y = f"f32[{cols},{rows}]", f"f32[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"%1: {y} = permute %0 {{axes=[1,0]}}",
                 f"%2: {y} = cumsum %1 {{axis=1}}")


def running_of_turned(rows, cols):
    """Of rows; their sums as columns."""
    x, y = f"f32[{rows},{cols}]", f"f32[{cols},{rows}]"
    return graph(f"%0 x: {x}", f"%1: {y} = permute %0 {{axes=[1,0]}}",
                 f"%2: {y} = cumsum %1 {{axis=0}}")


def running_logarithms(rows, cols):
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"%1: {x} = logcumsumexp %0 {{axis=1}}")


def running_maxima(rows, cols, axis=1):
    """The place of the largest so far."""
    return graph(f"%0 x: f32[{rows},{cols}]", f"%1: i64[{rows},{cols}] = cummax %0 {{axis={axis}}}")


def running_maxima_and_places(rows, cols):
    x, n = f"f32[{rows},{cols}]", f"i64[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"!%1: {n} = cummax %0 {{axis=1}}",
                 f"!%2: {x} = gather %0, %1 {{axis=1}}")


def scattered(dtype, targets, cols, updates):
    """Updates of rows, each row chosen some times."""
    x, d, n = f"{dtype}[{targets},{cols}]", f"{dtype}[{updates},{cols}]", f"i64[{updates}]"
    return graph(f"%0 x: {x}, %1 d: {d}", f"%2: {n} = iota", "%3: i64[] = constant {value=7919}",
                 f"%4: {n} = expand %3", f"%5: {n} = mul %2, %4",
                 f"%6: i64[] = constant {{value={targets}}}", f"%7: {n} = expand %6",
                 f"%8: {n} = remainder %5, %7", f"%9: i64[{updates},1] = reshape %8",
                 f"%10: i64[{updates},{cols}] = expand %9",
                 f"%11: {x} = scatter_add %0, %10, %1 {{axis=0}}")


def plane(a, b, c):
    """Sums over two axes that are not one in memory."""
    return graph(f"%0 x: f32[{a},{b},{c}]",
                 f"%1: f32[{a},{b - 1},{c}] = slice %0 {{axis=1, start=0, stop={b - 1}, step=1}}",
                 f"%2: f32[{c}] = sum %1 {{axes=[0,1]}}")


def cast_softmax(rows, cols):
    """Of halves, in f32: what is asked of the fast exp has a slow answer beside it."""
    half, x = f"bf16[{rows},{cols}]", f"f32[{rows},{cols}]"
    return graph(f"%0 x: {half}", f"%1: {x} = cast %0",
                 *softmax_lines(x, f"f32[{rows},1]", of=1), f"%9: {half} = cast %8")


def shared_windows(count, size):
    """Two warps share a row; each row begins one behind the last."""
    each = (size + 63) // 64
    while each & (each - 1):
        each += 1
    return "\n".join([
        "program g on cuda {", f"  input x: f64[{count + size - 1}]", f"  output y: f64[{count}]",
        f"  kernel sum_1 rows(i0: {count}) {{", f"    r0: f64 = sum(j0: {size}) load x[i0 + j0]",
        "    store y[i0] = r0",
        f"    schedule layouts rows grid loop warp 2 · register {each} · lane 32", "  }",
        "  launch sum_1", "  return y", "}", ""])


def sliding_windows(rows, cols):
    """Sums of three neighbours, each divided: what a pack's windows share is divided once."""
    x, wide = f"f32[{rows},{cols}]", f"f32[{rows},{cols + 2}]"
    parts = [f"%{5 + k}: {x} = slice %4 {{axis=1, start={k}, stop={cols + k}, step=1}}"
             for k in range(3)]
    return graph(f"%0 x: {x}", f"%1: {wide} = pad %0 {{low=[0,1], high=[0,1], value=0e+00}}",
                 "%2: f32[] = constant {value=3e+00}", f"%3: {wide} = expand %2",
                 f"%4: {wide} = div %1, %3", *parts, f"%8: {x} = add %5, %6",
                 f"%9: {x} = add %8, %7")


def alike(*sizes):
    """Steps of an optimiser over tensors of these sizes: kernels that share a launch."""
    inputs = [f"%{k} x{k}: f32[{n}]" for k, n in enumerate(2 * sizes)]
    lines, node = [], len(inputs)
    for k, n in enumerate(sizes):
        lines += [f"%{node}: f32[{n}] = sqrt %{k + len(sizes)}",
                  f"!%{node + 1}: f32[{n}] = sub %{k}, %{node}"]
        node += 2
    return graph(", ".join(inputs), *lines)


def running_softmax(rows, cols):
    """Running sums of a softmax: of up to four columns one thread does both."""
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: {x}", *softmax_lines(x, f"f32[{rows},1]"),
                 f"%8: {x} = cumsum %7 {{axis=1}}")


def hot(rows, cols):
    """One column of each row is changed, which an input names."""
    x, n = f"f32[{rows},{cols}]", f"i64[{rows},{cols}]"
    return graph(f"%0 x: {x}, %1 i: i64[{rows}]", f"%2: i64[{cols}] = iota",
                 f"%3: {n} = expand %2", f"%4: i64[{rows},1] = reshape %1",
                 f"%5: {n} = expand %4", f"%6: bool[{rows},{cols}] = eq %3, %5",
                 f"%7: {x} = neg %0", f"%8: {x} = where %6, %7, %0")


def attention(length, width):
    q, s, one = f"f32[{length},{width}]", f"f32[{length},{length}]", f"f32[{length},1]"
    return graph(f"%0 q: {q}, %1 k: {q}, %2 v: {q}",
                 f"%3: f32[{width},{length}] = permute %1 {{axes=[1,0]}}",
                 f"%4: {s} = matmul %0, %3", *softmax_lines(s, one, of=4),
                 f"%12: {q} = matmul %11, %2")


def halves_turned(dtype, rows, half):
    """Rotary positions: packs of either half of a row, each under its guard."""
    x, h = f"{dtype}[{rows},{2 * half}]", f"{dtype}[{rows},{half}]"
    return graph(f"%0 x: {x}, %1 c: {h}, %2 s: {h}",
                 f"%3: {h} = slice %0 {{axis=1, start=0, stop={half}, step=1}}",
                 f"%4: {h} = slice %0 {{axis=1, start={half}, stop={2 * half}, step=1}}",
                 f"%5: {h} = mul %3, %1", f"%6: {h} = mul %4, %2", f"%7: {h} = sub %5, %6",
                 f"%8: {h} = mul %4, %1", f"%9: {h} = mul %3, %2", f"%10: {h} = add %8, %9",
                 f"%11: {x} = concat %7, %10 {{axis=1}}")


def joined(dtype, rows, *widths):
    """Tensors side by side."""
    inputs = ", ".join(f"%{k} x{k}: {dtype}[{rows},{w}]" for k, w in enumerate(widths))
    y, n = f"{dtype}[{rows},{sum(widths)}]", len(widths)
    parts = ", ".join(f"%{k}" for k in range(n))
    return graph(inputs, f"%{n}: {y} = concat {parts} {{axis=1}}", f"%{n + 1}: {y} = neg %{n}")


def padded(dtype, rows, cols, low, high, value):
    y = f"{dtype}[{rows + low[0] + high[0]},{cols + low[1] + high[1]}]"
    return graph(f"%0 x: {dtype}[{rows},{cols}]",
                 f"%1: {y} = pad %0 {{low=[{low[0]},{low[1]}], high=[{high[0]},{high[1]}], "
                 f"value={value}}}")


def chosen_lines(dtype, cols, count):
    """Rows of %0 by an index that is an input, so that the kernel may fail; drawn are 0, 1, 2."""
    y = f"{dtype}[{count},{cols}]"
    return [f"%2: i64[{count},1] = reshape %1", f"%3: i64[{count},{cols}] = expand %2",
            f"%4: {y} = gather %0, %3 {{axis=0}}"]


def chosen(dtype, rows, cols, count):
    return graph(f"%0 t: {dtype}[{rows},{cols}], %1 i: i64[{count}]",
                 *chosen_lines(dtype, cols, count))


def chosen_softmax(rows, cols, count):
    return graph(f"%0 t: f32[{rows},{cols}], %1 i: i64[{count}]",
                 *chosen_lines("f32", cols, count),
                 *softmax_lines(f"f32[{count},{cols}]", f"f32[{count},1]", of=4))


def chosen_sum(rows, cols, count):
    """Sums of chosen rows, down their columns."""
    return graph(f"%0 t: f32[{rows},{cols}], %1 i: i64[{count}]",
                 *chosen_lines("f32", cols, count), f"%5: f32[{cols}] = sum %4 {{axes=[0]}}")


def picked(rows, cols):
    """An element of each row, as a loss picks that of its class."""
    return graph(f"%0 x: f32[{rows},{cols}], %1 i: i64[{rows}]",
                 f"%2: i64[{rows},1] = reshape %1", f"%3: f32[{rows},1] = gather %0, %2 {{axis=1}}")


def scattered_at(dtype, targets, cols, updates):
    """By an index that is an input, and so may fail."""
    x, d = f"{dtype}[{targets},{cols}]", f"{dtype}[{updates},{cols}]"
    return graph(f"%0 x: {x}, %1 d: {d}, %2 i: i64[{updates}]",
                 f"%3: i64[{updates},1] = reshape %2", f"%4: i64[{updates},{cols}] = expand %3",
                 f"%5: {x} = scatter_add %0, %4, %1 {{axis=0}}")


def sorted_rows(dtype, rows, cols):
    x, places = f"{dtype}[{rows},{cols}]", f"i64[{rows},{cols}]"
    return graph(f"%0 x: {x}", f"!%1: {places} = argsort %0 {{axis=1}}",
                 f"!%2: {places} = argsort_descending %0 {{axis=1}}",
                 f"!%3: {x} = gather %0, %1 {{axis=1}}")


def first_sorted(dtype, rows, cols, k):
    x, first = f"{dtype}[{rows},{cols}]", f"[{rows},{k}]"
    return graph(f"%0 x: {x}", f"%1: i64[{rows},{cols}] = argsort_descending %0 {{axis=1}}",
                 f"!%2: i64{first} = slice %1 {{axis=1, start=0, stop={k}, step=1}}",
                 f"!%3: {dtype}{first} = gather %0, %2 {{axis=1}}")


def scattered_apart(rows, cols, updates):
    """An index for each element: a thread alone."""
    n = f"[{updates},{cols}]"
    return graph(f"%0 x: f32[{rows},{cols}], %1 d: f32{n}, %2 i: i64{n}",
                 f"%3: f32[{rows},{cols}] = scatter_add %0, %2, %1 {{axis=0}}")


def dropout(dtype, rows, cols):
    x, n = f"{dtype}[{rows},{cols}]", f"[{rows},{cols}]"
    return graph(f"%0 x: {x}, %1 key: u64[2]", f"%2: u32{n} = philox %1 {{draw=3}}",
                 "%3: u32[] = constant {value=2147483648}", f"%4: u32{n} = expand %3",
                 f"%5: bool{n} = ge %2, %4", f"%6: {dtype}[] = constant {{value=0}}",
                 f"%7: {x} = expand %6", f"%8: {x} = add %0, %0", f"%9: {x} = where %5, %8, %7")


def normal(rows, cols):
    """Two draws, a root, a logarithm and a cosine, as randn has them."""
    x, n = f"f32[{rows},{cols}]", f"[{rows},{cols}]"
    return graph("%0 key: u64[2]", f"%1: u32{n} = philox %0 {{draw=0}}",
                 f"%2: u32{n} = philox %0 {{draw=1}}", "%3: u32[] = constant {value=8}",
                 f"%4: u32{n} = expand %3", f"%5: u32{n} = shift_right %1, %4",
                 f"%6: u32{n} = shift_right %2, %4", f"%7: {x} = cast %5", f"%8: {x} = cast %6",
                 "%9: f32[] = constant {value=5.9604645e-08}", f"%10: {x} = expand %9",
                 f"%11: {x} = mul %7, %10", f"%12: {x} = mul %8, %10", f"%13: {x} = cos %12",
                 "%14: f32[] = constant {value=1.0}", f"%15: {x} = expand %14",
                 f"%16: {x} = sub %15, %11", f"%17: {x} = log %16", f"%18: {x} = neg %17",
                 f"%19: {x} = sqrt %18", f"%20: {x} = mul %19, %13")


def multiplied(dtype, m, k, n, batch=None):
    b = "" if batch is None else f"{batch},"
    y = f"{dtype}[{b}{m},{n}]"
    return graph(f"%0 a: {dtype}[{b}{m},{k}], %1 b: {dtype}[{b}{k},{n}]",
                 f"%2: {y} = matmul %0, %1")


def chain(rows, cols):
    """Kernels one after the other that no fusion makes one."""
    x = f"f32[{rows},{cols}]"
    return graph(f"%0 x: {x}", *softmax_lines(x, f"f32[{rows},1]"),
                 f"%8: f32[{cols}] = sum %7 {{axes=[0]}}", f"%9: {x} = expand %8",
                 f"%10: {x} = div %7, %9", f"!%11: f32[{cols}] = sum %10 {{axes=[0]}}", "!%7")


GRAPHS = {
    # pointwise: packs, a tail, rows that end within a pack
    "gelu f32 [33,1001]": pointwise("f32", 33, 1001),
    "gelu bf16 [64,4096]": pointwise("bf16", 64, 4096),
    "gelu f16 [1001,7]": pointwise("f16", 1001, 7),
    "gelu f32 [4100,1024] in slabs": pointwise("f32", 4100, 1024),
    "hot [130,33]": hot(130, 33),
    # tiles and turned ones
    "transposed f32 [130,257]": transposed("f32", 130, 257),
    "transposed bf16 [512,384]": transposed("bf16", 512, 384),
    "result turned bf16 [512,384]": result_turned("bf16", 512, 384),
    "turned softmax [130,1000]": turned_softmax(130, 1000),
    "turned softmax [513,1001]": turned_softmax(513, 1001),
    "turned softmax [33,2047]": turned_softmax(33, 2047),
    "turned softmax [264,3000]": turned_softmax(264, 3000),
    "scheduled rows f32 [40,3000]": scheduled_rows("f32", 40, 3000),
    "scheduled rows bf16 [70,700]": scheduled_rows("bf16", 70, 700),
    "scheduled rows bf16 [70,3000]": scheduled_rows("bf16", 70, 3000),
    "scheduled rows f32 [99,9]": scheduled_rows("f32", 99, 9),
    "turned softmax [64,12000]": turned_softmax(64, 12000),
    "turned softmax [40,40000]": turned_softmax(40, 40000),
    "turned products [260,96]": turned_products(260, 96),
    # rows: short and many, staged; lanes, warps, a block, a cluster; kept, staged, read once
    "softmax f32 [20000,7]": softmax("f32", 20000, 7),
    "softmax f32 [1001,7]": softmax("f32", 1001, 7),
    "softmax f32 [37,127]": softmax("f32", 37, 127),
    "softmax bf16 [9000,127]": softmax("bf16", 9000, 127),
    "softmax bf16 [300,1000]": softmax("bf16", 300, 1000),
    "softmax f32 [20000,1024]": softmax("f32", 20000, 1024),
    "softmax f32 [9,4097]": softmax("f32", 9, 4097),
    "softmax f32 [300,16384]": softmax("f32", 300, 16384),
    "softmax f32 [3,9001]": softmax("f32", 3, 9001),
    "softmax f32 [5,50257]": softmax("f32", 5, 50257),
    "softmax bf16 [5,50257]": softmax("bf16", 5, 50257),
    "softmax of a cast bf16 [300,1000]": cast_softmax(300, 1000),
    "softmax of a cast bf16 [300,2040]": cast_softmax(300, 2040),
    "log_softmax f32 [5,50257]": log_softmax("f32", 5, 50257),
    "log_softmax f64 [5,5025]": log_softmax("f64", 5, 5025),
    "log_softmax bf16 [300,3001]": log_softmax("bf16", 300, 3001),
    "less its place f32 [300,3001]": less_its_place(300, 3001),
    "normalised bf16 [300,4096]": normalised("bf16", 300, 4096),
    "normalised f32 [7,768]": normalised("f32", 7, 768),
    "loss f32 [7,1000]": loss(7, 1000),
    "loss f32 [130,33]": loss(130, 33),
    "loss f32 [9,4097]": loss(9, 4097),
    "loss f32 [3,9001]": loss(3, 9001),
    "loss f32 [5,50257]": loss(5, 50257),
    "loss f32 [64,50257]": loss(64, 50257),
    "sum f64 [3,1000003]": reduced("sum", "f64", 3, 1000003, 1),
    "sum f32 [4,50257]": reduced("sum", "f32", 4, 50257, 1),
    "max i8 [5,50257]": reduced("max", "i8", 5, 50257, 1),
    "argmax f32 [5,20000]": reduced("argmax", "f32", 5, 20000, 1),
    "sum_exp f32 [5,50257]": reduced("sum_exp", "f32", 5, 50257, 1),
    "three tensors alike [1000] [7] [4099]": alike(1000, 7, 4099),
    "sum f32 [16,65536] of columns": reduced("sum", "f32", 16, 65536, 0),
    "exp f32 [300,5001], stored while it is summed": graph(
        "%0 x: f32[300,5001]", "!%1: f32[300,5001] = exp %0",
        "!%2: f32[300] = sum %1 {axes=[1]}"),
    "patches of 8 of bf16 [2,6,64,64]": graph(
        "%0 x: bf16[2,6,64,64]", "%1: bf16[2,6,8,8,8,8] = reshape %0",
        "%2: bf16[2,8,8,6,8,8] = permute %1 {axes=[0,2,4,1,3,5]}",
        "%3: bf16[2,8,8,384] = reshape %2", "%4: bf16[2,8,8,384] = neg %3"),
    "sums of windows [4096,257]": shared_windows(4096, 257),
    "sums of padded windows [300,64]": sliding_windows(300, 64),
    # columns, split and not; sums of columns beside rows
    "sum f32 [50257,33] of columns": reduced("sum", "f32", 50257, 33, 0),
    "sum i64 [1000,257] of columns": reduced("sum", "i64", 1000, 257, 0),
    "max bf16 [4097,1000] of columns": reduced("max", "bf16", 4097, 1000, 0),
    "max bf16 [3001,1000] of columns": reduced("max", "bf16", 3001, 1000, 0),
    "argmax f32 [1001,130] of columns": reduced("argmax", "f32", 1001, 130, 0),
    "sum_exp f32 [2049,40] of columns": reduced("sum_exp", "f32", 2049, 40, 0),
    "softmax f32 [1000,256] of columns, in registers": softmax("f32", 1000, 256, 0),
    "softmax f32 [4099,96] of columns, shared by clusters": softmax("f32", 4099, 96, 0),
    "softmax f32 [300,4000] of rows, shared by a block": softmax("f32", 300, 4000),
    "softmax f32 [300,20000] of rows, shared by a cluster": softmax("f32", 300, 20000),
    "softmax bf16 [300,3071] of rows, the last chunk short": softmax("bf16", 300, 3071),
    "softmax bf16 [600,512] of columns, in registers": softmax("bf16", 600, 512, 0),
    "sum_exp f32 [1030,64] of columns, in registers": reduced("sum_exp", "f32", 1030, 64, 0),
    "softmax f32 [2049,257] of columns": softmax("f32", 2049, 257, 0),
    "plane [20,33,40]": plane(20, 33, 40),
    "folded [4096,1000]": folded(4096, 1000),
    "folded [1000,127]": folded(1000, 127),
    # a row's steps one after the other: in tiles, of many rows and of one; by a thread alone
    "running sums f32 [4100,600]": running("f32", 4100, 600),
    "running sums bf16 [4100,1000]": running("bf16", 4100, 1000),
    "running sums f64 [130,257]": running("f64", 130, 257),
    "running sums f32 [1,20000]": running("f32", 1, 20000),
    "running sums f32 [2,1100]": running("f32", 2, 1100),
    "running sums f32 [130,7]": running("f32", 130, 7),
    "running sums f32 [130,257] of columns": running("f32", 130, 257, 0),
    "running sums f32 [700,257] of columns": running("f32", 700, 257, 0),
    "running sums f32 [70,9000]": running("f32", 70, 9000),
    "running sums f32 [3,40001]": running("f32", 3, 40001),
    "running sums f32 [4100,9] of columns": running("f32", 4100, 9, 0),
    "running sums f32 [300,600] turned": running_turned(300, 600),
    "running sums f32 [1100,300] whose results are turned": running_of_turned(1100, 300),
    "running maxima [300,700]": running_maxima(300, 700),
    "running maxima [700,300] of columns": running_maxima(700, 300, 0),
    "running maxima [300,700] and their places": running_maxima_and_places(300, 700),
    "running logarithms [40,5120]": running_logarithms(40, 5120),
    "running sums of a softmax [37,12]": running_softmax(37, 12),
    "running sums of a softmax [37,4]": running_softmax(37, 4),
    # blocks that own rows and find their updates: packs, halves, more than a list holds
    "scattered f32 [1000,128] by 5000": scattered("f32", 1000, 128, 5000),
    "scattered bf16 [5000,33] by 777": scattered("bf16", 5000, 33, 777),
    "scattered f64 [3,9] by 9001": scattered("f64", 3, 9, 9001),
    "scattered by an input f32 [5,128] by 5000": scattered_at("f32", 5, 128, 5000),
    "scattered by an input bf16 [9,33] by 777": scattered_at("bf16", 9, 33, 777),
    # several rows a warp, a row a warp, warps that share a row, runs
    "sorted i32 [131,29]": sorted_rows("i32", 131, 29),
    "sorted f32 [65,100]": sorted_rows("f32", 65, 100),
    "the first 8 of f32 [37,128]": first_sorted("f32", 37, 128, 8),
    "the first 20 of f64 [5,700]": first_sorted("f64", 5, 700, 20),
    "sorted f16 [3,1000]": sorted_rows("f16", 3, 1000),
    "sorted bf16 [3,5000]": sorted_rows("bf16", 3, 5000),
    "sorted f64 [2,2049]": sorted_rows("f64", 2, 2049),
    "scattered f32 [3000,4] by 70000": scattered("f32", 3000, 4, 70000),
    "scattered bf16 [50000,1] by 66000": scattered("bf16", 50000, 1, 66000),
    "scattered i32 [64,1] by 9001": scattered("i32", 64, 1, 9001),
    "scattered apart f32 [5,33] by 70": scattered_apart(5, 33, 70),
    "scattered apart f32 [5,33] by 5000": scattered_apart(5, 33, 5000),
    "scattered apart f32 [20000,3] by 1500": scattered_apart(20000, 3, 1500),
    # packs under a guard: halves of rows, tensors side by side, a frame, rows chosen by an input
    # (they may fail); and where the guard is asked of each element
    "halves turned bf16 [99,128]": halves_turned("bf16", 99, 64),
    "joined f32 [600,24]": joined("f32", 600, 8, 12, 4),
    "joined f32 [601,15]": joined("f32", 601, 5, 7, 3),
    "padded f32 [300,20]": padded("f32", 300, 20, (1, 4), (2, 8), 0.0),
    "padded bf16 [301,19] with -inf": padded("bf16", 301, 19, (1, 3), (2, 1), "-inf"),
    "chosen bf16 [50,96] by 100": chosen("bf16", 50, 96, 100),
    "chosen f32 [50,97] by 101": chosen("f32", 50, 97, 101),
    "chosen f64 [50,96] by 100": chosen("f64", 50, 96, 100),
    "chosen softmax [50,1000] by 70": chosen_softmax(50, 1000, 70),
    "sum of chosen rows [500,256] by 1000": chosen_sum(500, 256, 1000),
    "chosen softmax [50,7] by 1001": chosen_softmax(50, 7, 1001),
    "picked [1001,33]": picked(1001, 33),
    # random numbers
    "dropout f32 [1000,33]": dropout("f32", 1000, 33),
    "dropout bf16 [64,4096]": dropout("bf16", 64, 4096),
    "normal f32 [130,257]": normal(130, 257),
    # matmuls of our own (tiles of 32, of 64 and of 128, whole and not), and what stands between two
    "matmul f32 [300,70] by [70,260]": multiplied("f32", 300, 70, 260),
    "matmul f32 [2040,9] by [9,2045]": multiplied("f32", 2040, 9, 2045),
    "matmul f32 [510,17] by [17,1020]": multiplied("f32", 510, 17, 1020),
    "matmul bf16 [256,64] by [64,256]": multiplied("bf16", 256, 64, 256),
    "matmul f32 3 of [65,41] by [41,67]": multiplied("f32", 65, 41, 67, batch=3),
    "matmul f64 3 of [65,40] by [40,67]": multiplied("f64", 65, 40, 67, batch=3),
    "matmul bf16 3 of [65,41] by [41,67]": multiplied("bf16", 65, 41, 67, batch=3),
    "attention [257,64]": attention(257, 64),
    # called several times: started one by one, recorded, replayed
    "calls of a chain [1000,127]": chain(1000, 127),
    "calls of a short kernel [33,101]": pointwise("f32", 33, 101),
    "calls of a chosen softmax [50,127] by 70": chosen_softmax(50, 127, 70),
}


CALLS = 4  # started one by one, recorded and launched, replayed twice


def verdict(tool, text, code):
    """'clean', or what is not."""
    if "the same bits as the interpreter's" not in text:
        said = [line for line in text.splitlines()
                if line.startswith(("tc: ", "========= Error")) or "differs" in line]
        return f"exit code {code}: " + "; ".join(said or text.splitlines()[-1:])
    if tool is None:
        return "clean"
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
    if not summary:
        return "the tool says nothing"
    return "clean" if code == 0 and re.match(r"0 (errors|hazards)", summary[-1]) else summary[-1]


def check(tool, name, folder):
    """The verdict on one graph, and what the tool reported."""
    command = [TC, "run", path_of(name, folder), "--backend=cuda", "--against=interpreter"]
    if name.startswith("calls of"):
        command.append(f"--calls={CALLS}")
    if tool is not None:
        # A call that asks the driver for a symbol that may be missing is no fault of a kernel's.
        extra = {"racecheck": ["--racecheck-report", "all"],
                 "memcheck": ["--report-api-errors", "no"]}.get(tool, [])
        command = ["compute-sanitizer", "--tool", tool, *extra, "--error-exitcode", "9", *command]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                             env={**os.environ, "TC_CACHE_DIR": os.path.join(folder, "cache")})
    except subprocess.TimeoutExpired:
        return f"did not end in {SECONDS} s", ""
    text = run.stdout + run.stderr
    reported = [line for line in text.splitlines()
                if line.startswith("=====") and "Host Frame" not in line]
    return verdict(tool, text, run.returncode), "\n".join(reported[:SHOWN])


def path_of(name, folder):
    return os.path.join(folder, re.sub(r"\W+", "_", name) + ".graph")


def check_all(tool, names, folder, jobs):
    """What a record keeps: how many are clean, and of the others what was said."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = dict(zip(names, pool.map(lambda name: check(tool, name, folder), names)))
    dirty = {name: run for name, run in runs.items() if run[0] != "clean"}
    print(f"{tool or 'plain'}: {len(names) - len(dirty)} clean of {len(names)}", flush=True)
    for name, (said, reported) in dirty.items():
        print(f"  {name}: {said}\n{reported}")
    return {"clean": len(names) - len(dirty), **{name: run[0] for name, run in dirty.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="of " + ", ".join(TOOLS))
    parser.add_argument("--plain", action="store_true", help="no tool, only the bits")
    parser.add_argument("--only", default="", help="graphs whose name has these words")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--json", help="write what was found")
    parser.add_argument("--emit", help="write the graphs to this folder and stop")
    arguments = parser.parse_args()
    unknown = set(arguments.tools) - set(TOOLS)
    if unknown:
        parser.error(f"no tool {', '.join(unknown)}: there are {', '.join(TOOLS)}")
    names = [name for name in GRAPHS if arguments.only in name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.emit or scratch
        os.makedirs(folder, exist_ok=True)
        for name in names:
            with open(path_of(name, folder), "w") as file:
                file.write(GRAPHS[name])
        if arguments.emit:
            return 0
        tools = [None] if arguments.plain else arguments.tools or TOOLS
        if tools != [None] and not shutil.which("compute-sanitizer"):
            parser.error("compute-sanitizer is missing: it comes with the CUDA Toolkit")
        if not os.path.exists(TC):
            parser.error("build/tc is missing: make build/tc")
        found = {tool or "plain": check_all(tool, names, folder, arguments.jobs) for tool in tools}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"graphs": names, **found}, file, indent=1)
    return 0 if all(said["clean"] == len(names) for said in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
