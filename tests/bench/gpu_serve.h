// The benchmark's side of a conversation with gpu_bench.py or speed_peers.py.
//
// Commands: hello | load ROW | inputs | check_small | check_full | launches | time N | host N |
// copy BYTES N | memory | startup RUNS | save DIRECTORY | check_last | drop
#pragma once

#include "tests/bench/gpu_measure.h"

namespace bench {

// Until the end of standard input. `self` is this program's path, for processes that start a
// row.
int serve(const Machine& machine, const std::string& self, const RowMaker& make);

// A program's main: `run` is given the arguments and the program's path; what it throws is told.
int run_program(int argc, char** argv,
                int (*run)(const std::vector<std::string>& arguments, const std::string& self));

std::string quoted(const std::string& text);  // as JSON
std::string number(double value);

}  // namespace bench
