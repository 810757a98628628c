// What TC_DEBUG_DIR keeps of a process, read back.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/compile/bisect.h"
#include "tiny_compile/compile/call_record.h"

namespace tiny_compile {

struct Dump {
  std::string name, directory;
  std::map<std::string, RecordedRun>
      graphs;                       // by what their files' names begin with: soft_3fa2c1
  std::vector<RecordedCall> calls;  // none where TC_DEBUG_CALLS was not set
};

// 0.npy, 1.npy, ..., as `tc run --out` writes them, are the outputs where there is one graph.
// Throws tc::Error where a file is missing, was cut or does not read back.
Dump read_dump(const std::string& directory);

// The elements of all of them; none where those of one were not kept.
std::optional<std::vector<Tensor>> kept(const Dump& dump,
                                        const std::vector<RecordedTensor>& tensors);

// The stages of a call's graph, with what the call gave, where that was kept.
RecordedRun run_of(const Dump& dump, const RecordedCall& call);

}  // namespace tiny_compile
