// Tensors by name, as files of weights hold them: .safetensors and .npz.
#pragma once

#include <map>
#include <string>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

using NamedTensors = std::map<std::string, Tensor>;

struct LoadOptions {
  bool allow_nan = false;  // else a NaN is a tc::Error that names tensor and index
};

// By the end of the path's name, .safetensors or .npz; another one is a tc::Error. Files are written
// whole or not at all (base/output_file.h).
NamedTensors load_tensors(const std::string& path, LoadOptions options = {});
void save_tensors(const std::string& path, const NamedTensors& tensors);

// np.savez's: entries "name.npy", not compressed. bf16, which NumPy lacks, is a tc::Error. Loading
// throws tc::Error for what is compressed, damaged, or no array.
NamedTensors load_npz(const std::string& path, LoadOptions options = {});
void save_npz(const std::string& path, const NamedTensors& tensors);

// Hugging Face's: a header of JSON, then the elements. Loading throws tc::Error where the header
// does not describe the bytes behind it exactly.
NamedTensors load_safetensors(const std::string& path, LoadOptions options = {});
void save_safetensors(const std::string& path, const NamedTensors& tensors);

// "w.npz: NaN in 'bias' at [3]; ...": throws tc::Error.
void check_no_nan(const NamedTensors& tensors, const std::string& path);

}  // namespace tiny_compile
