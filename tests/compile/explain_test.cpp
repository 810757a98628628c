// What explain says: a rung for each stage, as text and as JSON that parses. Which launches and
// bytes are right is fuse_test.cpp's matter.
#include "tiny_compile/compile/explain.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "tests/runtime/scratch.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// A value of JSON, read strictly: what the standard does not allow throws.
struct Json {
  std::map<std::string, Json> members;
  std::vector<Json> items;
  std::string text;
  double number = 0;
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    const Json result = value();
    space();
    if (at_ != text_.size()) throw Error("JSON goes on after its end");
    return result;
  }

 private:
  void space() {
    while (at_ < text_.size() && std::string(" \n\r\t").find(text_[at_]) != std::string::npos)
      at_++;
  }
  char peek() {
    space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    at_++;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw Error(str("JSON: no '", c, "' at ", at_, " of\n", text_));
  }

  Json value() {
    if (peek() == '{') return object();
    if (peek() == '[') return array();
    Json result;
    if (peek() == '"')
      result.text = string();
    else
      result.number = number();
    return result;
  }

  Json object() {
    Json result;
    expect('{');
    if (accept('}')) return result;
    do {
      peek();
      const std::string key = string();
      expect(':');
      result.members[key] = value();
    } while (accept(','));
    expect('}');
    return result;
  }

  Json array() {
    Json result;
    expect('[');
    if (accept(']')) return result;
    do {
      result.items.push_back(value());
    } while (accept(','));
    expect(']');
    return result;
  }

  std::string string() {
    expect('"');
    std::string result;
    for (; at_ < text_.size() && text_[at_] != '"'; at_++) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) throw Error("JSON: a bare control");
      if (text_[at_] != '\\') {
        result += text_[at_];
        continue;
      }
      const char escaped = text_.at(++at_);
      if (std::string("\"\\/n").find(escaped) == std::string::npos) throw Error("JSON: escape");
      result += escaped == 'n' ? '\n' : escaped;
    }
    if (at_++ >= text_.size()) throw Error("JSON: a string without end");
    return result;
  }

  double number() {  // -0.5e+3, not .5, 01, nan or inf
    size_t end = at_;
    while (end < text_.size() &&
           std::string("+-.eE0123456789").find(text_[end]) != std::string::npos)
      end++;
    const std::string word = text_.substr(at_, end - at_);
    const size_t digit = word.find_first_of("0123456789");
    const bool starts = digit == 0 || (digit == 1 && word[0] == '-');
    if (!starts || (word[digit] == '0' && digit + 1 < word.size() && isdigit(word[digit + 1])))
      throw Error(str("JSON: '", word, "' is no number, at ", at_, " of\n", text_));
    at_ = end;
    return std::stod(word);
  }

  std::string text_;
  size_t at_ = 0;
};

struct OwnCache {
  Scratch scratch;
  Setting setting{"TC_CACHE_DIR", scratch.path("cache")};
};

Graph gelu_graph() {
  return parse_graph(R"(graph biased(%0 x: f32[5,64], %1 bias: f32[64]) {
  %2: f32[5,64] = expand %1
  %3: f32[5,64] = add %0, %2
  %4: f32[5,64] = gelu %3
  return %4
}
)");
}

// Two kernels that stay two.
Graph refused_graph() {
  return parse_graph(R"(graph f(%0 x: f32[8,64]) {
  %1: f32[8,64] = cumsum %0 {axis=1}
  %2: f32[8,64] = cumsum %1 {axis=1}
  %3: f32[8,64] = sub %2, %1
  return %3
}
)");
}

}  // namespace

TEST_CASE("a rung for eager and for each stage, each with its numbers", "[explain]") {
  const OwnCache cache;
  const std::vector<Tensor> inputs = {randn({5, 64}), randn({64})};
  const Explanation said = explain(gelu_graph(), inputs, default_pipeline(), 0);
  std::vector<std::string> stages;
  for (const Rung& rung : said.rungs) {
    stages.push_back(rung.stage);
    INFO(rung.stage);
    CHECK(rung.milliseconds > 0);
    CHECK(rung.stage_milliseconds >= 0);
    CHECK(rung.gigabytes_per_second() > 0);
    CHECK(same_bits(rung.outputs.at(0), gelu(inputs[0] + inputs[1])));
  }
  CHECK(join(stages, " ") ==
        "eager simplify fold cse dce lower fuse fold_columns schedule plan_memory tile emit");
  CHECK(said.rungs[0].launches == 2);
  CHECK(said.rungs[0].bytes == 4 * (64 + 4 * 320));  // between them a temporary, twice
  CHECK(said.rungs.back().launches == 1);
  CHECK(said.rungs.back().bytes == 4 * (64 + 2 * 320));
  CHECK(said.rungs[0].compile_milliseconds > 0);
  CHECK(said.exceptions.empty());
  CHECK(said.name == "biased");
}

TEST_CASE("every rung's bytes are those of a count of distinct elements", "[explain]") {
  const OwnCache cache;
  const std::vector<Tensor> inputs = {randn({8, 64})};
  const Graph graph = refused_graph();
  const Explanation said = explain(graph, inputs, until(default_pipeline(), "fuse"), 0);
  for (const Rung& rung : said.rungs) {
    const Pipeline prefix =
        rung.stage == "eager" ? Pipeline{} : until(default_pipeline(), rung.stage);
    const Program program = run_pipeline(prefix, graph, true).program;
    const std::vector<int64_t> touched = bytes_touched(program, inputs);
    INFO(rung.stage);
    CHECK(rung.bytes == std::accumulate(touched.begin(), touched.end(), int64_t{0}));
    CHECK(rung.launches == static_cast<int64_t>(touched.size()));
  }
}

TEST_CASE("the text has the ladder, refusals, both IRs and the source", "[explain]") {
  const OwnCache cache;
  const Explanation said =
      explain(refused_graph(), std::vector<Tensor>{randn({8, 64})}, default_pipeline(), 0);
  const std::string text = said.str();
  for (const char* part :
       {"== f: the ladder (same bits on every rung)\n", "launches", "bytes MB", "GB/s",
        "compile ms", "\neager ", "\nsimplify ", "\nemit ", "== kernels kept apart\n",
        "another kernel lies between them", "== exceptions to the numeric contract\nnone\n",
        "== graph, as traced\ngraph f(", "== graph, after the passes\ngraph f(",
        "== program\nprogram f", "== source\n", "extern \"C\" void"})
    CHECK_THAT(text, ContainsSubstring(part));
  const std::string ladder = said.ladder();
  CHECK(std::count(ladder.begin(), ladder.end(), '\n') == 13);
  CHECK_THAT(text, ContainsSubstring(ladder));
  const size_t traced = text.find("== graph, as traced\n") + 20;
  CHECK(parse_graph(text.substr(traced, text.find("\n== graph, after") - traced)) ==
        refused_graph());
}

TEST_CASE("nothing kept apart says none", "[explain]") {
  const OwnCache cache;
  const Explanation said = explain(gelu_graph(), std::vector<Tensor>{ones({5, 64}), ones({64})},
                                   until(default_pipeline(), "fuse"), 0);
  CHECK_THAT(said.str(), ContainsSubstring("== kernels kept apart\nnone\n"));
}

TEST_CASE("the JSON parses and says what the rungs say", "[explain]") {
  const OwnCache cache;
  const Explanation said = explain(refused_graph(), std::vector<Tensor>{randn({8, 64})},
                                   until(default_pipeline(), "fuse"), 0);
  Json json = JsonReader(said.json()).read();
  CHECK(json.members["name"].text == "f");
  REQUIRE(json.members["stages"].items.size() == said.rungs.size());
  for (size_t k = 0; k < said.rungs.size(); k++) {
    Json rung = json.members["stages"].items[k];
    CHECK(rung.members["stage"].text == said.rungs[k].stage);
    CHECK(rung.members["launches"].number == said.rungs[k].launches);
    CHECK(rung.members["bytes"].number == said.rungs[k].bytes);
    for (const char* time : {"milliseconds", "stage_milliseconds", "compile_milliseconds"})
      CHECK(rung.members.count(time) == 1);
  }
  REQUIRE(json.members["refusals"].items.size() == said.staged.program.refusals.size());
  CHECK(json.members["refusals"].items[0].text == said.staged.program.refusals[0]);
  CHECK(json.members["exceptions"].items.empty());
}

TEST_CASE("the JSON of odd numbers and texts parses too", "[explain]") {
  Explanation odd;
  odd.name = "a\"b\\c\nd\te";
  odd.rungs.push_back({"st\\age\"", int64_t{1} << 40, 0, 1e-9, 1e21, 123456.789, {}});
  odd.exceptions = {"mul_3: \"their\" sum", "other"};
  odd.staged.program.refusals = {"x -> \"y\"", "", "caf\xc3\xa9"};
  Json json = JsonReader(odd.json()).read();
  CHECK(json.members["name"].text == "a\"b\\c\nd e");
  CHECK(json.members["stages"].items[0].members["stage"].text == "st\\age\"");
  CHECK(json.members["stages"].items[0].members["launches"].number == 1099511627776.);
  CHECK(json.members["exceptions"].items.size() == 2);
  CHECK(json.members["refusals"].items.size() == 3);
  CHECK(json.members["refusals"].items[2].text == "caf\xc3\xa9");
  CHECK(JsonReader(Explanation().json()).read().members["stages"].items.empty());
}

TEST_CASE("a program climbs from where it stands, and its inputs are checked", "[explain]") {
  const OwnCache cache;
  const Program program =
      run_pipeline(until(default_pipeline(), "lower"), gelu_graph(), true).program;
  const std::vector<Tensor> inputs = {randn({5, 64}), randn({64})};
  const Explanation said = explain(program, inputs, default_pipeline(), 0);
  std::vector<std::string> stages;
  for (const Rung& rung : said.rungs) stages.push_back(rung.stage);
  CHECK(join(stages, ", ") ==
        "as given, fuse, fold_columns, schedule, plan_memory, tile, emit");
  CHECK(said.rungs.front().launches == 2);
  CHECK(said.rungs.back().launches == 1);
  CHECK(same_bits(said.rungs.back().outputs.at(0), gelu(inputs[0] + inputs[1])));
  CHECK_THAT(said.str(), !ContainsSubstring("== graph"));
  const std::vector<Tensor> wrong = {inputs[1], inputs[0]};
  CHECK_THAT(message_of([&] { explain(program, wrong, default_pipeline(), 0); }),
             ContainsSubstring("input x is f32[5,64], but was given f32[64]"));
}

TEST_CASE("a prediction has the rungs of a run, for a machine that is not here", "[explain]") {
  const OwnCache cache;
  const Explanation there = explain_for(gelu_graph(), parse_machine("a100")),
                    here = explain(gelu_graph(), std::vector<Tensor>{ones({5, 64}), ones({64})},
                                   default_pipeline(), 0);
  REQUIRE(there.rungs.size() == here.rungs.size());
  CHECK(there.rungs[0].bytes == here.rungs[0].bytes);
  CHECK(there.rungs[0].milliseconds > there.rungs.back().milliseconds);  // two launches, one
  CHECK(there.staged.program.machine == parse_machine("a100"));
  CHECK(there.machine() == "made for a100; nothing was run, times are the model's");
  const Program lowered =
      run_pipeline(until(default_pipeline(), "lower"), gelu_graph(), true).program;
  CHECK(explain_for(lowered, parse_machine("cpu:4")).staged.program.machine.cores == 4);
  CHECK_THROWS_WITH(
      explain_for(parse_graph("graph g[n](%0 x: f32[n]) {\n %1: f32[n] = neg %0\n "
                              "return %1\n}"),
                  parse_machine("a100")),
      ContainsSubstring("explain") || ContainsSubstring("emit"));
}

TEST_CASE("a pass that changes a bit is caught on its rung and named", "[explain]") {
  const OwnCache cache;
  const Pipeline pipeline = replace(default_pipeline(), "cse", [](const Graph& graph) {
    Graph wrong = graph;
    for (Node& node : wrong.nodes) {
      if (node.op == Op::gelu) node.op = Op::erf;
    }
    return wrong;
  });
  const std::vector<Tensor> inputs = {ones({5, 64}), ones({64})};
  CHECK_THAT(message_of([&] { explain(gelu_graph(), inputs, pipeline, 0); }),
             ContainsSubstring("after stage 'cse' output 0") && ContainsSubstring("element 0"));
}

TEST_CASE("explain of a compiled function takes what a call takes", "[explain]") {
  const OwnCache cache;
  CompileOptions options;
  options.pipeline = {};
  options.name = "mine";
  const Tensor w = ones({4});
  const auto f =
      compile([&w](Tensor x, std::vector<Tensor> more, Tensor rate,
                   int times) { return dropout(x * w + more[0] * rate, 0.5) * times; },
              options);
  const std::string text = explain(f, ones({4}), std::vector<Tensor>{ones({4})}, ones({}), 3);
  CHECK_THAT(text, ContainsSubstring("== mine: the ladder") && ContainsSubstring("philox"));
  CHECK(f.cache().size() == 0);
}

TEST_CASE("inputs of another layout are copied, of another type refused", "[explain]") {
  const OwnCache cache;
  const auto explained = [](const std::string& input, std::vector<Tensor> inputs) {
    const Graph graph =
        parse_graph("graph g(%0 x: " + input + ") {\n %1: f32[4] = neg %0\n return %1\n}");
    return explain(graph, inputs, {}, 0).rungs[0].outputs[0];
  };
  const Tensor x = randn({8});
  for (const Tensor& input : {x.slice(0, 0, 4).flip({0}), x.slice(0, 0, 8, 2)})
    CHECK(same_bits(explained("f32[4]", {input}), -input));
  const Tensor strided = x.slice(0, 1, 8, 2);
  CHECK(same_bits(explained("f32[4] {strides=[2]}", {strided}), -strided));
  const auto refusal = [&](const std::string& input, std::vector<Tensor> inputs) {
    return message_of([&] { explained(input, inputs); });
  };
  CHECK_THAT(refusal("f32[4]", {ones({2})}),
             ContainsSubstring("input x is f32[4]") && ContainsSubstring("f32[2]"));
  CHECK_THAT(refusal("f32[4]", {ones({4}, float64)}), ContainsSubstring("f64[4]"));
  CHECK_THAT(refusal("f32[4] {strides=[2]}", {ones({4})}),
             ContainsSubstring("strides [2], but was given [1]"));
  CHECK_THAT(refusal("f32[4]", {}), ContainsSubstring("has 1 inputs, but 0 were given"));
  CHECK_THAT(refusal("f32[4]", {Tensor()}), ContainsSubstring("undefined"));
}

TEST_CASE("an explanation says who owns what, and the limit, of each kernel", "[explain]") {
  Explanation said;  // of a program for a GPU, which need not run for it
  said.staged.program = parse_program(R"(program f on cuda {
  input x: f32[96,500]
  output y: f32[96]
  kernel k rows(i0: 96) {
    r0: f32 = sum(j0: 500) load x[i0*500 + j0]
    store y[i0] = r0
    schedule layouts rows grid · lane 4 loop register 4 · warp 16 · lane 8 from 4
  }
  launch k
  return y
}
)");
  CHECK_THAT(said.str(),
             ContainsSubstring("== who owns what, and the limit\nk\n  who: 24 blocks "
                               "of 16 warps, each with 4 of 96 rows; ") &&
                 ContainsSubstring("\n  limit: launch; "));
  const Json json = JsonReader(said.json()).read();
  REQUIRE(json.members.at("kernels").items.size() == 1);
  const Json& kernel = json.members.at("kernels").items[0];
  CHECK(kernel.members.at("name").text == "k");
  CHECK(kernel.members.at("blocks").number == 24);
  CHECK(kernel.members.at("warps").number == 16);
  CHECK(kernel.members.at("shared_bytes").number == 2048);
  CHECK(kernel.members.at("resident_blocks").number == 4);
  CHECK(kernel.members.at("resident_by").text == "threads");
  CHECK(kernel.members.at("limit").text == "launch");
  CHECK(kernel.members.at("bytes").number == 4 * (96 * 500 + 96));
  CHECK(kernel.members.at("lines").items.size() == 4);
  CHECK(kernel.members.at("microseconds").number >=
        kernel.members.at("floor_microseconds").number);
}
