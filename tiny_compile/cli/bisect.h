// tc bisect A B: where two runs of one graph part.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tiny_compile/compile/bisect.h"

namespace tiny_compile {

// A run of each graph whose texts TC_DEBUG_DIR kept in this directory, by name; 0.npy, 1.npy, ...,
// as `tc run --out` writes them, are its recorded outputs where there is one graph. Throws tc::Error
// where a file is missing or does not read back.
std::vector<RecordedRun> read_dump(const std::string& directory);

// `words` behind "bisect". Returns 0 where the runs agree, 2 where they do not.
int bisect_runs(const std::vector<std::string>& words, std::ostream& out);

}  // namespace tiny_compile
