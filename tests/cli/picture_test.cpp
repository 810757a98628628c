// tc's pictures: their texts to the byte, what they show, and that they are well-formed.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/fuzz/layouts.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/cli/charts.h"
#include "tiny_compile/cli/commands.h"
#include "tiny_compile/cli/layout.h"
#include "tiny_compile/cli/layout_picture.h"
#include "tiny_compile/cli/picture.h"
#include "tiny_compile/cli/svg.h"
#include "tiny_compile/cli/tree_picture.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/tensor/tensor.h"
#include "tiny_compile/trace/creation.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kMatmul = R"(graph g(%0 x: f32[4,8], %1 w: f32[8,3]) {
  %2: f32[4,8] = exp %0
  %3: f32[4,3] = matmul %2, %1
  %4: f32[4,3] = neg %3
  return %4
}
)";

constexpr const char* kTwice = R"(graph g(%0 x: f32[8]) {
  %1: f32[8] = exp %0
  %2: f32[8] = exp %0
  %3: f32[8] = add %1, %2
  return %3
}
)";

struct Ran {
  int code = 0;
  std::string out, problems;
};

Ran tc(std::vector<std::string> words, const std::string& input = kMatmul) {
  std::istringstream in(input);
  std::ostringstream out, problems;
  words.insert(words.begin(), "picture");
  Ran ran;
  ran.code = run_tc(words, in, out, problems);
  ran.out = out.str();
  ran.problems = problems.str();
  return ran;
}

// What comes behind the style sheet and the page's rectangle.
std::string body(const std::string& svg) {
  const size_t style = svg.find("</style>\n");
  if (style == svg.npos) return svg;
  return svg.substr(svg.find("/>\n", style) + 3);
}

// "" or what is wrong: tags that do not pair, attributes without quotes, a bare & or <.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const size_t end = text.find(';', at);
      if (end == text.npos || end - at > 6) return "a bare &";
      at = end + 1;
      continue;
    }
    if (text[at] != '<') {
      if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n') return "a control";
      at++;
      continue;
    }
    const size_t end = text.find('>', at);
    if (end == text.npos) return "a tag that does not end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != tag.npos) return "a bare <";
    if (std::count(tag.begin(), tag.end(), '"') % 2) return "quotes of <" + tag + ">";
    for (size_t k = tag.find('='); k != tag.npos; k = tag.find('=', tag.find('"', k + 2) + 1)) {
      if (tag[k + 1] != '"') return "an attribute without quotes: <" + tag + ">";
    }
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "<" + tag + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

// The value of "(x0 + x2) + x1" in f32.
float value_of(const std::string& text, size_t& at, const std::vector<float>& x) {
  float sum = 0;
  for (bool first = true;; first = false) {
    float term = 0;
    if (text[at] == '(') {
      term = value_of(text, ++at, x);
      at++;  // the bracket
    } else {
      size_t digits = 0;
      term = x[std::stoul(text.substr(at + 1), &digits)];
      at += 1 + digits;
    }
    sum = first ? term : sum + term;
    if (text.compare(at, 3, " + ") != 0) return sum;
    at += 3;
  }
}

}  // namespace

TEST_CASE("a fused graph as Mermaid", "[picture]") {
  CHECK(tc({"graph", "-", "--format=mermaid"}).out == R"txt(flowchart TD
  n0(["x<br>f32[4,8]"])
  n1(["w<br>f32[8,3]"])
  subgraph g0["k0 exp_2  256 B"]
    n2["%2 exp<br>f32[4,8]"]
  end
  subgraph g1["k1 matmul_neg_4  272 B"]
    n3["%3 matmul<br>f32[4,3]"]
    n4["%4 neg<br>f32[4,3]"]:::output
  end
  n0 --> n2
  n1 --> n3
  n2 -.->|"a matmul reads its operands<br>many times: they stay in<br>memory"| n3
  n3 --> n4
  classDef gone fill:#fdd,stroke:#c00,color:#600
  classDef new fill:#dfd,stroke:#080,color:#040
  classDef output stroke-width:3px
  style g0 fill:#d3e9f8,stroke:#0072b2,color:#111
  style g1 fill:#fde8c4,stroke:#b97900,color:#111
)txt");
}

TEST_CASE("a fused graph as DOT", "[picture]") {
  CHECK(tc({"graph", "-", "--format=dot"}).out == R"txt(digraph {
  node [shape=box, style="filled,rounded", fillcolor="#f6f8fa", color="#8c959f", fontname=monospace, fontsize=11];
  edge [color="#59636e", fontname=monospace, fontsize=10];
  graph [fontname=monospace, fontsize=11, compound=true];
  n0 [label="x\nf32[4,8]", shape=ellipse];
  n1 [label="w\nf32[8,3]", shape=ellipse];
  subgraph cluster_g0 {
    label="k0 exp_2  256 B"; style="filled,rounded"; color="#0072b2"; fillcolor="#d3e9f8";
    n2 [label="%2 exp\nf32[4,8]"];
  }
  subgraph cluster_g1 {
    label="k1 matmul_neg_4  272 B"; style="filled,rounded"; color="#b97900"; fillcolor="#fde8c4";
    n3 [label="%3 matmul\nf32[4,3]"];
    n4 [label="%4 neg\nf32[4,3]", penwidth=2.5];
  }
  n0 -> n2;
  n1 -> n3;
  n2 -> n3 [style=dashed, color="#cf222e", fontcolor="#cf222e", label="a matmul reads its operands\nmany times: they stay in\nmemory"];
  n3 -> n4;
}
)txt");
}

TEST_CASE("a fused graph as SVG, with colours for light and dark", "[picture]") {
  const std::string svg = tc({"graph", "-"}).out;
  CHECK_THAT(svg, ContainsSubstring(".g0{fill:#d3e9f8;stroke:#0072b2}") &&
                      ContainsSubstring("@media (prefers-color-scheme:dark){text{") &&
                      !ContainsSubstring("http://fonts") && !ContainsSubstring("@import"));
  CHECK(
      body(svg) ==
      R"txt(<text class="title" x="16" y="28">g: 3 kernels became 2, 624 B moved became 528 B</text>
<path class="arrow" d="M195 84 C195 97 195 97 195 109"/>
<path class="head" d="M195 114 l-4 -7 h8 z"/>
<path class="arrow" d="M55 227 C55 240 117 240 117 254"/>
<path class="head" d="M117 259 l-4 -7 h8 z"/>
<path class="refused" d="M195 154 C195 169 214 169 214 184 M214 229 C214 242 117 242 117 254"/>
<path class="redhead" d="M117 259 l-4 -7 h8 z"/>
<text class="reason small" x="214" y="195" text-anchor="middle">a matmul reads its operands</text>
<text class="reason small" x="214" y="210" text-anchor="middle">many times: they stay in</text>
<text class="reason small" x="214" y="225" text-anchor="middle">memory</text>
<path class="arrow" d="M117 299 C117 312 111 312 111 324"/>
<path class="head" d="M111 329 l-4 -7 h8 z"/>
<rect class="box input" x="156" y="44" width="78" height="40" rx="20"/>
<text x="195" y="60" text-anchor="middle">x</text>
<text class="dim" x="195" y="75" text-anchor="middle">f32[4,8]</text>
<rect class="box input" x="16" y="187" width="78" height="40" rx="20"/>
<text x="55" y="203" text-anchor="middle">w</text>
<text class="dim" x="55" y="218" text-anchor="middle">f32[8,3]</text>
<rect class="box g0" x="156" y="114" width="78" height="40" rx="4"/>
<text x="195" y="130" text-anchor="middle">%2 exp</text>
<text class="dim" x="195" y="145" text-anchor="middle">f32[4,8]</text>
<rect class="box g1" x="75" y="259" width="85" height="40" rx="4"/>
<text x="117" y="275" text-anchor="middle">%3 matmul</text>
<text class="dim" x="117" y="290" text-anchor="middle">f32[4,3]</text>
<rect class="box g1 output" x="72" y="329" width="78" height="40" rx="4"/>
<text x="111" y="345" text-anchor="middle">%4 neg</text>
<text class="dim" x="111" y="360" text-anchor="middle">f32[4,3]</text>
<rect class="box g0" x="348" y="44" width="14" height="14" rx="3"/>
<text class="small" x="370" y="55">k0 exp_2  256 B</text>
<rect class="box g1" x="348" y="66" width="14" height="14" rx="3"/>
<text class="small" x="370" y="77">k1 matmul_neg_4  272 B</text>
</svg>
)txt");
}

TEST_CASE("every node that a kernel computes has its colour, and one kernel has one",
          "[picture]") {
  for (uint64_t seed = 1; seed <= 30; seed++) {
    const Graph graph = random_graph(seed);
    const Pipeline fuse = until(default_pipeline(), "fuse");
    const Drawing drawing = fused_drawing(graph, fuse);
    const Staged staged = run_pipeline(fuse, graph, false);
    const Graph drawn = inline_calls(staged.graph);
    INFO(print(graph) << print(staged.program));
    REQUIRE(drawing.groups.size() == staged.program.kernels.size());
    const bool has_empty =  // nobody computes those, nor what only they read
        std::any_of(graph.nodes.begin(), graph.nodes.end(),
                    [](const Node& node) { return product(node.type.shape).is_constant(0); });
    std::set<int> colours;
    for (size_t b = 0; b < drawing.boxes.size(); b++) {
      const Box& box = drawing.boxes[b];
      colours.insert(box.group);
      CHECK(box.group < static_cast<int>(drawing.groups.size()));
      const Op op = drawn[static_cast<int>(b)].op;
      if (op == Op::input) CHECK(box.group < 0);
      const bool read =
          std::any_of(drawing.arrows.begin(), drawing.arrows.end(),
                      [&](const Arrow& a) { return a.from == static_cast<int>(b); });
      if (read && !has_empty && (is_pointwise(op) || is_reduction(op))) CHECK(box.group >= 0);
    }
    colours.erase(-1);
    CHECK(colours.size() == drawing.groups.size());
  }
}

TEST_CASE("a refused arrow joins two kernels, and one that is not refused says nothing",
          "[picture]") {
  const Drawing drawing = fused_drawing(parse_graph(kMatmul), default_pipeline());
  int refused = 0;
  for (const Arrow& arrow : drawing.arrows) {
    refused += arrow.is_refused;
    if (arrow.is_refused)
      CHECK(drawing.boxes[arrow.from].group != drawing.boxes[arrow.to].group);
    else
      CHECK(arrow.label.empty());
  }
  CHECK(refused == 1);
}

TEST_CASE("without fusion no node has a colour", "[picture]") {
  const std::string svg = tc({"graph", "-", "--until=dce"}).out;
  CHECK_THAT(svg, !ContainsSubstring("box g0") && ContainsSubstring("%3 matmul"));
}

TEST_CASE("a program is drawn with kernels for boxes", "[picture]") {
  std::istringstream in(kMatmul);
  std::ostringstream lowered, problems;
  REQUIRE(run_tc({"print", "-", "--until=lower"}, in, lowered, problems) == 0);
  const std::string text = tc({"graph", "-", "--format=mermaid"}, lowered.str()).out;
  CHECK_THAT(text, ContainsSubstring("n2[\"exp_2<br>32 rows\"]") &&
                       ContainsSubstring("subgraph g1[\"k1 matmul_neg_4") &&
                       ContainsSubstring("n2 -.->|\"a matmul reads"));
}

TEST_CASE("a film shows what each pass takes out, under the numbers of the trace",
          "[picture]") {
  CHECK(tc({"passes", "-", "--format=mermaid"}, kTwice).out == R"txt(flowchart TD
  subgraph f0["cse: 4 nodes to 3"]
    f0n0(["x"])
    f0n1["%1 exp"]
    f0n2["%2 exp"]:::gone
    f0n3["%3 add"]:::output
    f0n0 --> f0n1
    f0n0 --> f0n2
    f0n1 --> f0n3
    f0n2 --> f0n3
  end
  subgraph f1["after: 3 nodes (no change: simplify, fold, dce)"]
    f1n0(["x"])
    f1n1["%1 exp"]
    f1n2["%3 add"]:::output
    f1n0 --> f1n1
    f1n1 --> f1n2
  end
  classDef gone fill:#fdd,stroke:#c00,color:#600
  classDef new fill:#dfd,stroke:#080,color:#040
  classDef output stroke-width:3px
)txt");
}

TEST_CASE("what a pass puts in is new in the next frame", "[picture]") {
  const std::vector<Drawing> frames = film_strip(parse_graph(R"(graph g(%0 x: f32[8]) {
  %1: f32[] = constant {value=2.0}
  %2: f32[8] = expand %1
  %3: f32[8] = add %0, %2
  return %3
}
)"),
                                                 until(default_pipeline(), "fold"));
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].boxes[2].look == Look::Gone);
  CHECK(frames[0].boxes[2].lines[0] == "%2 expand");
  CHECK(frames[1].boxes[2].look == Look::New);
  CHECK(frames[1].boxes[2].lines[0] == "2.0");
}

TEST_CASE("a memory chart has a block for each temporary, and the arena's size", "[picture]") {
  const std::string svg = tc({"memory", "-", "--passes=plan_memory"}).out;
  CHECK_THAT(svg, ContainsSubstring("2 temporaries, 176 B; at most 176 B alive at once, in "
                                    "launch 1; the arena has 192 B"));
  CHECK_THAT(svg, ContainsSubstring("<rect class=\"box g0\" x=\"93\" y=\"180\" width=\"190\" "
                                    "height=\"200\"><title>t2 128 B f32[4,8] at 0</title>"));
  CHECK_THAT(svg, ContainsSubstring("<rect class=\"box g1\" x=\"189\" y=\"105\" width=\"190\" "
                                    "height=\"75\"><title>t3 48 B f32[4,3] at 128</title>"));
  const Ran unplanned = tc({"memory", "-", "--passes=fuse"});
  CHECK(unplanned.code == 1);
  CHECK_THAT(unplanned.problems, ContainsSubstring("plan_memory"));
}

TEST_CASE("what is written over another begins where that one ends", "[picture]") {
  const Graph graph = parse_graph(R"(
graph g(%0 x: f32[4,8], %1 w: f32[8,8]) {
  %2: f32[4,8] = matmul %0, %1
  %3: f32[4,8] = cumsum %2 {axis=1}
  %4: f32[4] = max %3 {axes=[1]}
  %5: f32[4,1] = reshape %4
  %6: f32[4,8] = expand %5
  %7: f32[4,8] = sub %3, %6
  %8: f32[4,8] = matmul %7, %1
  return %8
}
)");
  const Program program =
      run_pipeline(until(default_pipeline(), "plan_memory"), graph, true).program;
  INFO(print(program));
  const std::string svg = memory_chart(program);
  CHECK_THAT(svg, ContainsSubstring("the arena has 256 B"));
  CHECK_THAT(svg, ContainsSubstring("at most 256 B alive at once"));
  CHECK_THAT(svg, ContainsSubstring(" over t"));
}

TEST_CASE("operations are counted once where they are computed once", "[picture]") {
  const Program program = run_pipeline(until(default_pipeline(), "fuse"), parse_graph(R"(
graph g(%0 x: f32[4,8], %1 w: f32[8,3]) {
  %2: f32[4,1] = sum %0 {axes=[1], keepdim=1}
  %3: f32[4,1] = sqrt %2
  %4: f32[4,8] = expand %3
  %5: f32[4,8] = div %0, %4
  %6: f32[4,3] = matmul %5, %1
  return %6
}
)"),
                                       true)
                              .program;
  REQUIRE(program.kernels.size() == 2);
  CHECK(operations(program.kernels[0]) == 32 + 4 + 32);  // sum, a sqrt a row, div
  CHECK(operations(program.kernels[1]) == 2 * 4 * 3 * 8);
}

TEST_CASE("a roofline of a GPU's record has a dot a row, below the copy measured with it",
          "[picture]") {
  const std::string record = R"({"device": "GPU", "date": "2026-01-02", "commit": "abc",
 "copy_gbps": 4000, "rows": [
 {"row": "mse", "bytes": 4e6, "operations": 3e6, "contestants": {"tiny_compile": {"ms": 0.002}}},
 {"row": "none", "bytes": null, "operations": 0, "contestants": {"tiny_compile": {"ms": null}}},
 {"row": "failed", "error": "it \"broke\""}]})";
  const std::string svg = tc({"roofline", "-"}, record).out;
  CHECK(xml_problem(svg) == "");
  CHECK_THAT(svg, ContainsSubstring("Roofline, GPU, 2026-01-02, abc") &&
                      ContainsSubstring("4000 GB/s") && ContainsSubstring(">mse</text>") &&
                      ContainsSubstring("0.75 operations a byte, 1500 Gop/s, 50% of the roof"));
  CHECK_THAT(svg, !ContainsSubstring(">none") && !ContainsSubstring("failed"));
  CHECK_THAT(tc({"roofline", "-"}, R"({"rows": [{"row": "a", "gbps": 3}]})").problems,
             ContainsSubstring("no row of this record"));
  CHECK_THAT(tc({"roofline", "-"}, "{\"rows\": [").problems, ContainsSubstring("not whole"));
  CHECK_THAT(tc({"roofline", "-"}, "{]").problems, ContainsSubstring("not JSON"));
}

TEST_CASE("a roofline of a CPU's record has its rows of one thread", "[picture]") {
  const std::string record = R"({"cpu": "CPU", "rows": [
 {"row": "mse", "threads": 1, "gbps": 20, "bytes": 4000, "operations": 3000,
  "tiny_compile": {"median_us": 0.2}, "copy": {"median_us": 0.1}},
 {"row": "other", "threads": 2, "gbps": 90, "bytes": 4000, "operations": 3000,
  "tiny_compile": {"median_us": 0.1}, "copy": {"median_us": 0.01}}]})";
  const std::string svg = tc({"roofline", "-"}, record).out;
  CHECK_THAT(svg, ContainsSubstring("40 GB/s: a copy measured with these rows<") &&
                      ContainsSubstring("0.75 operations a byte, 15 Gop/s, 50% of the roof"));
  CHECK_THAT(svg, !ContainsSubstring("other"));
}

TEST_CASE("a roofline of a graph takes the machine it is given", "[picture]") {
  CHECK_THAT(tc({"roofline", "-", "--roof=100,2000"}).out,
             ContainsSubstring("100 GB/s, 2000 Gop/s: as given"));
  for (const char* roof : {"100", "0,5", "5,x", "1,2,3", "", "nan,1"})
    CHECK_THAT(tc({"roofline", "-", std::string("--roof=") + roof}).problems,
               ContainsSubstring("--roof"));
}

TEST_CASE("the drawn tree is the order in which the interpreter sums", "[picture]") {
  manual_seed(3);
  for (int64_t length = 1; length <= 64; length++) {
    const Tensor x = randn({length});
    const Graph graph = parse_graph(tiny_compile::str(
        "graph g(%0 x: f32[", length, "]) {\n  %1: f32[] = sum %0 {axes=[0]}\n  return %1\n}"));
    const std::vector<float> values = x.to_vector<float>();
    size_t at = 0;
    const std::string tree = sum_expression(length);
    INFO(tree);
    CHECK(value_of(tree, at, values) ==
          interpret(graph, std::vector<Tensor>{x})[0].to_vector<float>()[0]);
    CHECK(at == tree.size());
  }
  CHECK(sum_expression(3) == "(x0 + x2) + x1");
}

TEST_CASE("trees are drawn for one element and for very many", "[picture]") {
  for (const char* length :
       {"1", "2", "32", "33", "1024", "1025", "1048577", "999999999999999"}) {
    const Ran ran = tc({"tree", std::string("--length=") + length});
    INFO(length << ran.problems);
    CHECK(ran.code == 0);
    CHECK(xml_problem(ran.out) == "");
  }
  for (const char* length : {"0", "-1", "x", "", "9999999999999999999999"})
    CHECK(tc({"tree", std::string("--length=") + length}).code == 1);
}

TEST_CASE("pictures of random graphs are well-formed and the same each time", "[picture]") {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const std::string graph = print(random_graph(seed));
    INFO(graph);
    for (const char* kind : {"graph", "passes", "memory", "roofline"}) {
      const Ran first = tc({kind, "-"}, graph);
      INFO(kind << ": " << first.problems);
      REQUIRE(first.code == 0);
      CHECK(xml_problem(first.out) == "");
      CHECK(tc({kind, "-"}, graph).out == first.out);
    }
    for (const char* format : {"mermaid", "dot"}) {
      const std::string text =
          tc({"passes", "-", std::string("--format=") + format}, graph).out;
      CHECK(std::count(text.begin(), text.end(), '"') % 2 == 0);
      CHECK(std::count(text.begin(), text.end(), '{') ==
            std::count(text.begin(), text.end(), '}'));
    }
  }
}

TEST_CASE("boxes do not overlap, and arrows lead down", "[picture]") {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const Drawing drawing = fused_drawing(random_graph(seed, 24), default_pipeline());
    const LaidOut layout = lay_out(drawing);
    for (size_t a = 0; a < layout.boxes.size(); a++) {
      const Place& p = layout.boxes[a];
      CHECK(p.middle.x - p.width / 2 >= -0.01);
      CHECK(p.middle.x + p.width / 2 <= layout.width + 0.01);
      for (size_t b = 0; b < a; b++) {
        const Place& q = layout.boxes[b];
        const bool apart =
            std::abs(p.middle.x - q.middle.x) >= (p.width + q.width) / 2 - 0.01 ||
            std::abs(p.middle.y - q.middle.y) >= (p.height + q.height) / 2 - 0.01;
        CHECK(apart);
      }
    }
    for (const Route& route : layout.routes) {
      for (size_t k = 1; k < route.stops.size(); k++)
        CHECK(route.stops[k].middle.y > route.stops[k - 1].middle.y);
    }
  }
}

TEST_CASE("names that mean something to XML, Mermaid or DOT are written as names",
          "[picture]") {
  Drawing drawing;
  drawing.title = "a<b & \"c\"";
  drawing.boxes = {{{"x<y>&\"#\\"}, Look::Plain, -1, false, ""}};
  CHECK(xml_problem(svg({drawing})) == "");
  CHECK_THAT(svg({drawing}), ContainsSubstring("x&lt;y&gt;&amp;&quot;#\\"));
  CHECK_THAT(mermaid({drawing}), ContainsSubstring("n0[\"x#lt;y>&#quot;#35;\\\"]"));
  CHECK_THAT(dot({drawing}), ContainsSubstring("n0 [label=\"x<y>&\\\"#\\\\\"]"));
  CHECK(xml_problem(svg({})) == "");
}

TEST_CASE("without a FILE the demo's function is drawn", "[picture]") {
  const Ran ran = tc({"graph", "--format=mermaid"});
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("gather_sum_mul") && ContainsSubstring("%34 gelu"));
}

TEST_CASE("a mistake about pictures exits with 1 and says what there is", "[picture]") {
  CHECK_THAT(tc({}).problems, ContainsSubstring("needs a KIND"));
  CHECK_THAT(tc({"guards", "-"}).problems,
             ContainsSubstring("graph, passes, memory, layout, roofline"));
  CHECK_THAT(tc({"graph", "-", "--format=png"}).problems,
             ContainsSubstring("svg, mermaid and dot"));
  CHECK_THAT(tc({"memory", "-", "--format=dot"}).problems, ContainsSubstring("SVG only"));
  CHECK_THAT(tc({"graph", "/no/such"}).problems, ContainsSubstring("/no/such"));
  std::istringstream in(kMatmul);
  std::ostringstream program, problems;
  REQUIRE(run_tc({"print", "-", "--until=lower"}, in, program, problems) == 0);
  CHECK_THAT(tc({"passes", "-"}, program.str()).problems, ContainsSubstring("past its passes"));
  for (const char* kind : {"graph", "guards"}) CHECK(tc({kind, "-"}, "graph").code == 1);
}

// Layouts ----------------------------------------------------------------------------------------

namespace {

constexpr const char* kColumnSums = R"(program f on cuda {
  input x: f32[40,100]
  output y: f32[100]
  kernel down rows(i0: 100) {
    r0: f32 = sum(j0: 40) load x[i0 + j0*100]
    store y[i0] = r0
    schedule layouts rows grid · lane 32 loop register 16 · warp 4
  }
  launch down
  return y
}
)";

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) count++;
  return count;
}

}  // namespace

TEST_CASE("a block's tile shows the owner of each element", "[picture][layouts]") {
  const Ran ran = tc({"layout", "-"}, kColumnSums);
  INFO(ran.problems);
  REQUIRE(ran.code == 0);
  CHECK(xml_problem(ran.out) == "");
  CHECK_THAT(ran.out, ContainsSubstring("Across all 32 rows of the block, down the first 16 of "
                                        "64 elements of the row"));
  // Element 9 is 2 * 4 + 1: warp 1's, its register 2; all 32 lanes have it for a row each.
  CHECK(count_of(ran.out, "<title>warp 1, lane 5, register 2</title>") == 1);
  CHECK(count_of(ran.out, "<title>warp 1, ") == 4 * 32);
  CHECK_THAT(ran.out, ContainsSubstring("32 apart: register") &&
                          ContainsSubstring("2 apart: warp ^ 2") &&
                          ContainsSubstring("r0 = sum takes in this order"));
}

TEST_CASE("what a layout covers beyond the last element has no owner", "[picture][layouts]") {
  std::string few = kColumnSums;
  for (size_t at; (at = few.find("40")) != few.npos;) few.replace(at, 2, "13");
  const std::string out = tc({"layout", "-"}, few).out;
  CHECK(count_of(out, "<title>beyond the last</title>") == 3 * 32);
  CHECK(count_of(out, "<title>warp ") == 13 * 32);
}

TEST_CASE("kernels without layouts are drawn as what they have", "[picture][layouts]") {
  const std::string matmul = tc({"layout", "-"}).out;
  CHECK_THAT(matmul, ContainsSubstring("schedule tiles has no layouts") &&
                         ContainsSubstring("limit: launch"));
  CHECK_THAT(tc({"layout", "-", "--target=cpp"}).out, ContainsSubstring("has no layouts"));
  CHECK_THAT(tc({"layout"}).out, ContainsSubstring("limit: "));  // the demo's function
}

TEST_CASE("a layout of one kernel, and names that there are not", "[picture][layouts]") {
  const std::string one = tc({"layout", "-", "--kernel=exp_2"}).out;
  CHECK_THAT(one, ContainsSubstring(">exp_2<") && !ContainsSubstring("matmul"));
  const Ran wrong = tc({"layout", "-", "--kernel=softmax"});
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.problems,
             ContainsSubstring("program g has no kernel 'softmax', but exp_2, matmul_neg_4"));
  CHECK_THAT(tc({"layout", "-", "--target=tpu"}).problems,
             ContainsSubstring("no target 'tpu'"));
  CHECK_THAT(tc({"layout", "-", "--format=dot"}).problems, ContainsSubstring("SVG only"));
  CHECK_THAT(tc({"graph", "-", "--kernel=exp_2"}).problems, ContainsSubstring("has no effect"));
  CHECK_THAT(tc({"layout", "-"}, "graph e(%0 x: f32[2]) {\n  return %0\n}\n").problems,
             ContainsSubstring("nothing to draw"));
}

TEST_CASE("kernels of random programs under random layouts are drawn", "[picture][layouts]") {
  for (uint64_t seed = 0; seed < 60; seed++) {
    const Program program = run_pipeline(until(layouts_pipeline(), "plan_memory"),
                                         random_graph(seed), true, Target::Cuda)
                                .program;
    INFO("seed " << seed);
    if (program.kernels.empty()) continue;
    const std::string svg = layout_picture(program);
    CHECK(xml_problem(svg) == "");
    for (const Kernel& kernel : program.kernels)
      CHECK_THAT(svg, ContainsSubstring(">" + kernel.name + "<"));
  }
}
