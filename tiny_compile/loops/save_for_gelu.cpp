// Where do a network's two directions meet? At z: forward takes its gelu, backward its gelu'. The
// library gives both z and gelu(z), so whoever else needs a part of gelu's formula takes it from
// z. The formula is then computed twice, in registers, and y is never stored.
#include "tiny_compile/loops/save_for_gelu.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostLinks = 48;  // gelu and gelu' in halves are thirty ops
constexpr size_t kMostBefore = 5;  // of them, before z: a factor, a bias, casts

// Who reads and writes what; kernels are still an op each.
struct Uses {
  std::vector<std::vector<int>> reads;       // of each kernel
  std::vector<std::vector<size_t>> readers;  // of each buffer
  std::vector<size_t> writer;                // of each buffer; 0 for inputs

  explicit Uses(const Program& program)
      : reads(program.kernels.size()),
        readers(program.buffers.size()),
        writer(program.buffers.size()) {
    for (size_t k = 0; k < reads.size(); k++) {
      const std::vector<bool> read = buffers_read(program, program.kernels[k]),
                              written = buffers_written(program, program.kernels[k]);
      for (size_t b = 0; b < read.size(); b++) {
        if (read[b]) reads[k].push_back(static_cast<int>(b)), readers[b].push_back(k);
        if (written[b]) writer[b] = k;
      }
    }
  }
};

// A product with the pointwise ops that follow from it alone.
class Chain {
 public:
  Chain(const Program& program, const Uses& uses, size_t product)
      : program_(program), uses_(uses), group_(program.kernels[product]) {
    links_.push_back(product);
    std::set<size_t> next(readers_of(0).begin(), readers_of(0).end());
    while (!next.empty() && links_.size() < kMostLinks) {
      if (!add(next.extract(next.begin()).value())) continue;
      const std::vector<size_t>& more = readers_of(links_.size() - 1);
      next.insert(more.begin(), more.end());
    }
  }

  // The product that stores z and gelu(z), and which kernels nobody needs then.
  std::optional<Kernel> find(std::vector<bool>& gone) const {
    if (!bends()) return std::nullopt;
    for (size_t h = links_.size(); h-- > 1;) {
      if (!is_multiplied(h)) continue;
      for (size_t z = 0; z < std::min(h, kMostBefore) && is_own(z); z++) {
        if (!leaves(z, h)) continue;
        std::vector<bool> loaded(program_.buffers.size());
        loaded[written(z)] = loaded[written(h)] = true;
        const Kernel kernel = without_dead_stores(program_, storing(h, z), loaded);
        const LibraryMatch match = library_matmul(program_, kernel);
        if (!match.matmul || match.matmul->activation != Activation::Gelu ||
            match.matmul->d.buffer != written(h) || match.matmul->saved.buffer != written(z))
          continue;
        drop(h, z, gone);
        return kernel;
      }
    }
    return std::nullopt;
  }

 private:
  const Kernel& link(size_t at) const { return program_.kernels[links_[at]]; }
  int written(size_t at) const { return link(at).steps.back().buffer; }
  bool is_output(size_t at) const { return program_.buffers[written(at)].role == Role::Output; }
  const std::vector<size_t>& readers_of(size_t at) const { return uses_.readers[written(at)]; }
  bool has(size_t kernel) const {
    return std::find(links_.begin(), links_.end(), kernel) != links_.end();
  }

  // One op of one element, of what the chain has and of what was there before the product.
  bool add(size_t k) {
    const Kernel& kernel = program_.kernels[k];
    if (kernel.steps.size() != 1 || kernel.steps[0].kind != StepKind::Store) return false;
    for (int buffer : uses_.reads[k]) {
      const bool input = program_.buffers[buffer].role == Role::Input;
      if (!input && uses_.writer[buffer] >= links_[0] && !has(uses_.writer[buffer]))
        return false;
    }
    if (!merge_consumer(program_, group_, Group(kernel)).empty()) return false;
    links_.push_back(k);
    return true;
  }

  bool bends() const {
    return std::any_of(group_.kernel.scalars.begin(), group_.kernel.scalars.end(),
                       [](const Scalar& s) { return s.op == Op::sigmoid; });
  }

  // Whether it is in memory in the end: returned, or a factor of another product.
  bool is_multiplied(size_t at) const {
    const std::vector<size_t>& readers = readers_of(at);
    return is_output(at) || std::any_of(readers.begin(), readers.end(), [&](size_t k) {
             return program_.kernels[k].steps[0].kind == StepKind::Dot;
           });
  }

  // Whether all before it is for it alone: then it need not be stored.
  bool is_own(size_t z) const {
    for (size_t at = 0; at < z; at++) {
      if (is_output(at)) return false;
      for (size_t reader : readers_of(at)) {
        if (!std::count(links_.begin() + 1, links_.begin() + std::ptrdiff_t(z) + 1, reader))
          return false;
      }
    }
    return true;
  }

  // Whether something beside h needs what z is made of, or z itself.
  bool leaves(size_t z, size_t h) const {
    for (size_t at = z; at < links_.size(); at++) {
      const std::vector<size_t>& readers = readers_of(at);
      const bool outside = is_output(at) || std::any_of(readers.begin(), readers.end(),
                                                        [&](size_t k) { return !has(k); });
      if (at != h && outside) return true;
    }
    return false;
  }

  // z's and h's are the product's work now; with h's goes what was there for it alone.
  void drop(size_t h, size_t z, std::vector<bool>& gone) const {
    for (size_t at = links_.size(); at-- > 1;) {
      const std::vector<size_t>& readers = readers_of(at);
      const bool unread = std::all_of(readers.begin(), readers.end(),
                                      [&](size_t reader) { return gone[reader]; });
      gone[links_[at]] = at <= z || at == h || (unread && !is_output(at));
    }
  }

  // The chain as one kernel that stores these two; what it stores besides is others' work.
  Kernel storing(size_t h, size_t z) const {
    Kernel kernel = group_.finish();
    std::vector<Step> steps;
    for (const Step& step : kernel.steps) {
      if (makes_register(step) || step.buffer == written(h) || step.buffer == written(z))
        steps.push_back(step);
    }
    kernel.steps = steps;
    for (size_t at : {z, h})
      kernel.where.insert(kernel.where.end(), link(at).where.begin(), link(at).where.end());
    kernel.name = link(0).name.substr(0, link(0).name.rfind('_')) + "_gelu" +
                  link(h).name.substr(link(h).name.rfind('_'));
    return normalize(std::move(kernel));
  }

  const Program& program_;
  const Uses& uses_;
  Group group_;
  std::vector<size_t> links_;  // kernels, the product first
};

bool is_product(const Kernel& kernel) {
  return kernel.steps.size() == 2 && kernel.steps[0].kind == StepKind::Dot;
}

}  // namespace

Program save_for_gelu(const Program& program) {
  Program result = program;
  if (program.matmul == Matmul::Generated) return result;
  for (const std::vector<int>& launch : program.launches) {
    if (launch.size() != 1) return result;
  }
  const Uses uses(program);
  std::vector<bool> gone(program.kernels.size());
  for (size_t k = 0; k < program.kernels.size(); k++) {
    if (!is_product(program.kernels[k]) || !library_matmul(program, program.kernels[k]).matmul)
      continue;
    if (const std::optional<Kernel> both = Chain(program, uses, k).find(gone))
      result.kernels[k] = *both;
  }
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return result;
  std::vector<Kernel> kernels;
  result.launches.clear();
  for (size_t k = 0; k < gone.size(); k++) {
    if (gone[k]) continue;
    result.launches.push_back({static_cast<int>(kernels.size())});
    kernels.push_back(std::move(result.kernels[k]));
  }
  result.kernels = std::move(kernels);
  return result;
}

}  // namespace tiny_compile
