// Which address is each buffer's at a call? An input's is the tensor's own; outputs are
// new tensors, because the caller owns them; temporaries lie in one arena, where
// plan_memory put them.
#include "tiny_compile/runtime/buffers.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tiny_compile/tensor/recycled.h"

namespace tiny_compile {
namespace {

std::byte* first_byte(const Tensor& tensor, int64_t width) {
  const TensorData& data = tensor.info();
  return data.storage->data() + data.offset * width;
}

// Memory for what `describe` says, where there is none.
template <typename Describe>
std::shared_ptr<Storage> obtain(size_t bytes, const Allocate& allocate, Describe describe) {
  try {
    return allocate(bytes);
  } catch (const Error& error) {
    fail(describe(), ": ", error.what());
  }
}

// The same at each call with this shape, kept as long as the process lives: so nobody counts its
// owners, hundreds of times in a call, in a count that every thread must see.
LayoutPointer lasting_layout(const Sizes& shape) {
  static std::mutex mutex;
  static auto* layouts = new std::map<Sizes, LayoutPointer>;
  const std::lock_guard lock(mutex);
  LayoutPointer& layout = (*layouts)[shape];
  if (!layout) layout = row_major_layout(shape);
  return LayoutPointer(std::shared_ptr<void>(), layout.get());
}

// `storage`: null where memory is still to be found.
Tensor new_tensor(const BufferPlan::Output& output, std::span<const Tensor> inputs,
                  std::shared_ptr<Storage> storage, const Allocate& allocate) {
  auto data = make_recycled<TensorData>();
  data->dtype = output.dtype;
  data->layout = output.layout;
  if (output.over >= 0) {  // of the same bytes, maybe of another shape
    const TensorData& over = inputs[output.over].info();
    data->offset = over.offset;
    data->storage = over.storage;
    return Tensor(std::move(data));
  }
  data->storage = storage ? std::move(storage) : obtain(output.bytes, allocate, [&] {
    return str("a tensor ", output.dtype, "[", join(output.layout->shape, ","), "]");
  });
  return Tensor(std::move(data));
}

// Null for a temporary without elements.
std::byte* address_of(const BufferPlan::Place& place, std::span<const Tensor> inputs,
                      const BufferSet& set) {
  switch (place.role) {
    case Role::Input: return first_byte(inputs[place.slot], place.width) - place.bytes;
    case Role::Output: return first_byte(set.made[place.slot], place.width);
    case Role::Temporary: break;
  }
  return set.arena ? set.arena->data() + place.bytes : nullptr;
}

// How many inputs stand before this one.
int input_number(const Program& program, int buffer) {
  const auto begin = program.buffers.begin();
  return static_cast<int>(std::count_if(begin, begin + buffer,
                                        [](const Buffer& b) { return b.role == Role::Input; }));
}

BufferPlan::Output output_of(const Program& program, const Buffer& buffer) {
  Sizes shape;
  for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
  BufferPlan::Output output;
  output.dtype = buffer.type.dtype;
  output.bytes = static_cast<size_t>(element_count(shape)) * size_of(output.dtype);
  output.layout = lasting_layout(shape);
  if (buffer.over >= 0) output.over = input_number(program, buffer.over);
  return output;
}

}  // namespace

BufferPlan plan_buffers(const Program& program) {
  BufferPlan plan;
  plan.arena_bytes = program.arena_bytes;
  int inputs = 0;
  for (const Buffer& buffer : program.buffers) {
    const int64_t width = size_of(buffer.type.dtype);
    BufferPlan::Place place{buffer.role, 0, 0, width};
    if (buffer.role == Role::Input) {
      place.slot = inputs++;
      place.bytes = buffer.offset.constant() * width;
    } else if (buffer.role == Role::Output) {
      place.slot = static_cast<int>(plan.outputs.size());
      plan.outputs.push_back(output_of(program, buffer));
      if (plan.outputs.back().over < 0) plan.new_bytes.push_back(plan.outputs.back().bytes);
    } else if (buffer.place >= 0) {
      place.bytes = buffer.place;
    } else {
      place.bytes = plan.arena_bytes;
      plan.arena_bytes += (buffer.size.constant() * width + 255) / 256 * 256;
    }
    plan.places.push_back(place);
  }
  std::vector<bool> is_returned(plan.places.size());
  for (int buffer : program.outputs) {
    const BufferPlan::Place& place = plan.places[buffer];
    plan.returned.push_back(place.role == Role::Input ? -1 - place.slot : place.slot);
    plan.returns_once = plan.returns_once && !is_returned[buffer];
    is_returned[buffer] = true;
  }
  return plan;
}

BufferSet make_buffers(const BufferPlan& plan, std::span<const Tensor> inputs,
                       const Allocate& allocate, const std::string& name,
                       std::vector<std::shared_ptr<Storage>> spare) {
  BufferSet set;
  set.made.reserve(plan.outputs.size());
  spare.resize(plan.new_bytes.size());
  auto next = spare.begin();
  try {
    for (const BufferPlan::Output& output : plan.outputs) {
      auto storage = output.over < 0 ? std::move(*next++) : nullptr;
      set.made.push_back(new_tensor(output, inputs, std::move(storage), allocate));
    }
    if (plan.arena_bytes > 0)
      set.arena = obtain(static_cast<size_t>(plan.arena_bytes), allocate,
                         [] { return "its temporaries"; });
  } catch (const Error& error) {
    fail(name, ", compiled: ", error.what());
  }
  set.addresses.reserve(plan.places.size());
  for (const BufferPlan::Place& place : plan.places)
    set.addresses.push_back(address_of(place, inputs, set));
  return set;
}

void take_away(const Tensor& tensor, const std::string& why) {
  TensorData& data = *tensor.handle();
  data.gone = str("this tensor, ", data.dtype, "[", join(data.shape(), ","), "], ", why);
  data.storage.reset();
}

Overwriting::Overwriting(const BufferPlan& plan, std::span<const Tensor> inputs,
                         const std::string& name)
    : name_(name) {
  for (const BufferPlan::Output& output : plan.outputs) {
    if (output.over >= 0) inputs_.push_back(inputs[output.over]);
  }
}

Overwriting::~Overwriting() {
  if (inputs_.empty()) return;
  const std::string why =
      is_good_ ? str("was donated to ", name_, ": use what that call returned instead")
               : str("was donated to ", name_,
                     ", which failed and had begun to write over it: "
                     "its values are lost; go on from a copy of them, such as a checkpoint");
  for (const Tensor& input : inputs_) take_away(input, why);
}

std::vector<Tensor> results_of(const BufferPlan& plan, std::span<const Tensor> inputs,
                               BufferSet buffers) {
  std::vector<Tensor> results;
  results.reserve(plan.returned.size());
  for (int slot : plan.returned) {
    if (slot >= 0 && plan.returns_once)
      results.push_back(std::move(buffers.made[slot]));
    else
      results.push_back(slot < 0 ? inputs[-1 - slot] : buffers.made[slot]);
  }
  return results;
}

}  // namespace tiny_compile
