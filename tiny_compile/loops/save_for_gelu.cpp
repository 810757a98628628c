// Where do a network's two directions meet? At z: forward takes its gelu, backward its gelu'. The
// library gives both z and gelu(z), so whoever else needs a part of gelu's formula takes it from
// z. The formula is then computed twice, in registers, and y is never stored.
#include "tiny_compile/loops/save_for_gelu.h"

#include <algorithm>

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
    for (size_t k = product + 1; k < program.kernels.size() && links_.size() < kMostLinks; k++)
      add(k);
  }

  // The product that stores z and gelu(z), and which kernels' work that is.
  std::optional<Kernel> find(std::vector<size_t>& done) const {
    size_t leaving = 0;
    for (size_t at = 0; at < links_.size(); at++) leaving += leaves(at);
    if (!bends() || leaving < 2) return std::nullopt;
    for (size_t h = links_.size(); h-- > 1;) {
      if (!leaves(h)) continue;
      for (size_t z = 0; z < std::min(h, kMostBefore); z++) {
        std::vector<bool> loaded(program_.buffers.size());
        loaded[written(z)] = loaded[written(h)] = true;
        const Kernel kernel = without_dead_stores(program_, storing(h, z), loaded);
        const LibraryMatch match = library_matmul(program_, kernel);
        if (!match.matmul || match.matmul->activation != Activation::Gelu ||
            match.matmul->d.buffer != written(h) || match.matmul->saved.buffer != written(z))
          continue;
        done = {links_[z], links_[h]};
        return kernel;
      }
    }
    return std::nullopt;
  }

 private:
  const Kernel& link(size_t at) const { return program_.kernels[links_[at]]; }
  int written(size_t at) const { return link(at).steps.back().buffer; }
  bool has(size_t kernel) const {
    return std::find(links_.begin(), links_.end(), kernel) != links_.end();
  }

  // One op of one element, of what the chain has and of what was there before the product.
  void add(size_t k) {
    const Kernel& kernel = program_.kernels[k];
    if (kernel.steps.size() != 1 || kernel.steps[0].kind != StepKind::Store) return;
    bool follows = false;
    for (int buffer : uses_.reads[k]) {
      const bool input = program_.buffers[buffer].role == Role::Input;
      const bool ours = !input && has(uses_.writer[buffer]);
      follows = follows || ours;
      if (!ours && !input && uses_.writer[buffer] >= links_[0]) return;
    }
    if (follows && merge_consumer(program_, group_, Group(kernel)).empty()) links_.push_back(k);
  }

  bool bends() const {
    return std::any_of(group_.kernel.scalars.begin(), group_.kernel.scalars.end(),
                       [](const Scalar& s) { return s.op == Op::tanh; });
  }

  // Whether others read what it stores.
  bool leaves(size_t at) const {
    const std::vector<size_t>& readers = uses_.readers[written(at)];
    return program_.buffers[written(at)].role == Role::Output ||
           std::any_of(readers.begin(), readers.end(), [&](size_t k) { return !has(k); });
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
  Uses uses(result);
  bool changed = false;
  for (size_t k = 0; k < result.kernels.size(); k++) {
    if (!is_product(result.kernels[k]) || !library_matmul(result, result.kernels[k]).matmul)
      continue;
    std::vector<size_t> done;
    const std::optional<Kernel> both = Chain(result, uses, k).find(done);
    if (!both) continue;
    changed = true;
    result.kernels[k] = *both;
    std::sort(done.rbegin(), done.rend());
    for (size_t other : done) {
      if (other != k) result.kernels.erase(result.kernels.begin() + std::ptrdiff_t(other));
    }
    uses = Uses(result);
  }
  if (!changed) return result;
  result.launches.clear();
  for (size_t k = 0; k < result.kernels.size(); k++)
    result.launches.push_back({static_cast<int>(k)});
  return result;
}

}  // namespace tiny_compile
