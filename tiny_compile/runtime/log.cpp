// What happened in there? TC_LOGS=fusion prints "[fusion] add_2 + matmul_3: ..." lines; unknown
// channels are named once a process.
#include "tiny_compile/runtime/log.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>

namespace tiny_compile {
namespace {

constexpr std::string_view kChannels =
    ",graph,passes,fusion,loops,schedule,memory,code,guards,recompiles,cache,";

// Whether a comma-separated list has an item.
bool lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

void name_unknown_channels(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    if (!item.empty() && !lists(kChannels, item))
      std::fprintf(stderr, "TC_LOGS: no channel '%.*s'; there are %s\n",
                   static_cast<int>(item.size()), item.data(),
                   std::string(kChannels.substr(1, kChannels.size() - 2)).c_str());
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

}  // namespace

bool log_enabled(std::string_view channel) {
  const char* wanted = std::getenv("TC_LOGS");
  if (!wanted) return false;
  static std::once_flag checked;
  std::call_once(checked, name_unknown_channels, wanted);
  return lists(wanted, channel);
}

void log(std::string_view channel, const std::string& text) {
  if (!log_enabled(channel)) return;
  std::fprintf(stderr, "[%.*s] %s%s", static_cast<int>(channel.size()), channel.data(),
               text.c_str(), text.empty() || text.back() != '\n' ? "\n" : "");
}

void keep_text(const std::string& file_name, const std::string& text) {
  const char* directory = std::getenv("TC_DEBUG_DIR");
  if (!directory || !*directory) return;
  mkdir(directory, 0777);
  const std::string path = std::string(directory) + "/" + file_name;
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out)
    std::fprintf(stderr, "TC_DEBUG_DIR: cannot write %s: %s\n", path.c_str(),
                 std::strerror(errno));
}

}  // namespace tiny_compile
