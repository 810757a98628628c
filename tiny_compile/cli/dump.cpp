// What did another machine's compiler make, stage by stage, and what did its code compute?
//
//   here/soft_3fa2c1_0_trace.txt ... 10_emit.txt, calls.txt, tensors/9c41...
//     ->  graph soft_3fa2c1: trace simplify ... emit; call 1 of it: inputs, outputs
#include "tiny_compile/cli/dump.h"

#include <filesystem>
#include <regex>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/tensor/npy.h"

namespace tiny_compile {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::map<size_t, std::string>>;  // graph, number, stage

Made parse_made(const std::string& path, const std::string& stage) {
  const std::string text = read_text(path);
  try {
    if (text.rfind("graph ", 0) == 0) return {stage, parse_graph(text)};
    if (text.rfind("program ", 0) == 0 && stage == "tile") return {stage, parse_tiles(text)};
    if (text.rfind("program ", 0) == 0) return {stage, parse_program(text)};
  } catch (const Error& error) {
    fail(path, ":", error.what());
  }
  if (stage != "emit")
    fail(path, " holds neither a graph nor a program: it was cut or changed");
  return {stage, text};
}

Files files_of(const std::string& directory) {
  static const std::regex kName("(.*_[0-9a-f]{6})_([0-9]+)_(.+)\\.txt");
  Files files;
  for (const auto& item : fs::directory_iterator(directory)) {
    const std::string file = item.path().filename();
    std::smatch parts;
    if (!std::regex_match(file, parts, kName) || parts[2].length() > 5) continue;
    const bool is_new = files[parts[1]].insert({std::stoul(parts[2]), parts[3]}).second;
    if (!is_new)
      fail(directory, " holds two texts of stage ", parts[2].str(), " of ", parts[1].str(),
           ", of two pipelines or runs: give each a directory of its own");
  }
  if (files.empty())
    fail(directory, " holds no texts of stages: run with TC_DEBUG_DIR=", directory);
  return files;
}

}  // namespace

Dump read_dump(const std::string& directory) {
  const Files files = files_of(directory);
  Dump dump{directory, directory, {}, read_calls(directory)};
  for (const auto& [graph, stages] : files) {
    RecordedRun run{files.size() == 1 ? directory : directory + " " + graph, {}};
    for (const auto& [number, stage] : stages) {
      if (number != run.stages.size() || (number == 0 && stage != "trace"))
        fail(directory, " lacks the text of stage ", run.stages.size(), " of ", graph,
             ", which begins with 0_trace");
      run.stages.push_back(
          parse_made(str(directory, "/", graph, "_", number, "_", stage, ".txt"), stage));
    }
    dump.graphs[graph] = std::move(run);
  }
  for (size_t k = 0; dump.graphs.size() == 1; k++) {
    const std::string file = str(directory, "/", k, ".npy");
    if (!fs::exists(file)) break;
    dump.graphs.begin()->second.outputs.push_back(load_npy(file));
  }
  return dump;
}

std::optional<std::vector<Tensor>> kept(const Dump& dump,
                                        const std::vector<RecordedTensor>& tensors) {
  std::vector<Tensor> result;
  for (const RecordedTensor& tensor : tensors) {
    const std::optional<Tensor> elements = kept_tensor(dump.directory, tensor);
    if (!elements) return std::nullopt;
    result.push_back(*elements);
  }
  return result;
}

RecordedRun run_of(const Dump& dump, const RecordedCall& call) {
  const auto found = dump.graphs.find(call.graph);
  if (found == dump.graphs.end())
    fail(dump.name, " lacks the texts of ", call.graph, ", which its call ", call.number,
         " is of");
  RecordedRun run{dump.name, found->second.stages};
  run.outputs = kept(dump, call.outputs).value_or(std::vector<Tensor>());
  run.temporaries = kept(dump, call.temporaries).value_or(std::vector<Tensor>());
  return run;
}

}  // namespace tiny_compile
