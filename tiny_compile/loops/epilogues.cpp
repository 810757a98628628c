// Which of what follows a product comes for free? What the library's call can do as well:
//
//   matmul_1 [schedule library]          =>   matmul_add_gelu_3 [schedule library]
//   add_gelu_3: gelu(load t1 + load bias)
#include "tiny_compile/loops/epilogues.h"

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/grouped.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

bool is_left_to_library(const Kernel& kernel) {
  return schedule_of(kernel).strategy == Strategy::Library;
}

std::set<int> readers_of(const GroupGraph& groups, int id) {
  std::set<int> readers;
  for (const int buffer : groups.writes(id))
    readers.insert(groups.readers(buffer).begin(), groups.readers(buffer).end());
  return readers;
}

// The product with what its reader does, in `both`; or why the library's call is not that.
std::string with_epilogue(const Grouped& all, int product, int reader, Kernel& both) {
  const GroupGraph& groups = all.groups;
  if (groups.waits_between(product, reader)) return "another kernel lies between them";
  const Kernel& alone = groups.group(product).kernel;
  Group merged(alone);
  if (std::string reason = merge_consumer(all.program, merged, groups.group(reader));
      !reason.empty())
    return reason;
  std::vector<bool> loaded(all.program.buffers.size());
  for (size_t b = 0; b < loaded.size(); b++)
    loaded[b] = groups.readers(static_cast<int>(b)).size() >
                groups.readers(static_cast<int>(b)).count(reader);
  both = without_dead_stores(all.program, merged.finish(), loaded);
  const LibraryMatch match = library_matmul(all.program, both);
  if (!match.matmul) return match.reason;
  const LibraryMatmul before = *library_matmul(all.program, alone).matmul;
  if (match.matmul->m * match.matmul->n != before.m * before.n ||
      match.matmul->calls() > before.calls())
    return "its result would be written in pieces";
  return "";
}

void add_epilogue(Grouped& all, int product) {
  const std::set<int> readers = readers_of(all.groups, product);
  for (const int reader : readers) {
    if (is_scheduled(all.groups.group(reader).kernel)) continue;
    Kernel both;
    const std::string reason = readers.size() > 1 ? "several kernels read its result"
                                                  : with_epilogue(all, product, reader, both);
    if (!reason.empty()) {
      all.refuse(product, reader, "matmul is left to the library: " + reason);
      continue;
    }
    both.schedule = all.groups.group(product).kernel.schedule;
    all.groups.replace(product, both);
    all.groups.absorb(product, reader);
  }
}

Program with_epilogues(const Program& program) {
  Grouped all(program);
  all.add_all();
  const std::set<int> groups = all.groups.alive();
  for (const int id : groups) {
    const bool is_alive = all.groups.alive().count(id) > 0;  // no product's reader
    if (is_alive && is_left_to_library(all.groups.group(id).kernel)) add_epilogue(all, id);
  }
  return all.finish();
}

}  // namespace

Program add_epilogues(const Program& program) {
  Program result = is_past_fusion(program) ? program : with_epilogues(program);
  for (Kernel& kernel : result.kernels) {
    if (is_left_to_library(kernel)) kernel = collapse_axes(kernel);
  }
  return result;
}

}  // namespace tiny_compile
