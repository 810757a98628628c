// Blocks of a page: what counts as drift, what is kept, which links are dead.
#include "lessons/tools/blocks.h"
#include "lessons/tools/links.h"
#include "lessons/tools/record.h"
#include "tests/lessons/tools.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

TEST_CASE("blocks are found outside fences, and must end", "[lessons]") {
  const Lines page = split_lines(
      "a\n<!-- run: build/x y | text -->\nold\n<!-- end -->\n````\n"
      "<!-- code: no.cpp -->\n```\n````\n<!-- code: a.h#b -->\n<!-- end -->\n");
  const std::vector<Block> blocks = find_blocks("p.md", page);
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].argument == "build/x y | text");
  CHECK((blocks[0].first == 2 && blocks[0].last == 3));
  CHECK(blocks[1].argument == "a.h#b");
  CHECK_THROWS_WITH(find_blocks("p.md", {"<!-- run: x -->", "a"}), ContainsSubstring("p.md:1"));
}

TEST_CASE("[..] covers part of a line, a lone ... any lines", "[lessons]") {
  CHECK(covers({"took [..] ms"}, {"took 3.1 ms"}));
  CHECK(covers({"[..] of [..]"}, {"3 of 4"}));
  CHECK_FALSE(covers({"took [..] ms"}, {"took 3.1 us"}));
  CHECK_FALSE(covers({"a [..] a"}, {"a a"}));
  CHECK(covers({"a", "  ...", "d"}, {"a", "b", "c", "d"}));
  CHECK(covers({"..."}, {}));
  CHECK_FALSE(covers({"a", "...", "d"}, {"a", "b"}));
  CHECK_FALSE(covers({"a"}, {"a", "b"}));
}

TEST_CASE("what still covers stays when the rest is rewritten", "[lessons]") {
  CHECK(merge({"n 5", "t [..] ms", "gone"}, {"n 6", "t 2.0 ms", "new"}) ==
        Lines{"n 6", "t [..] ms", "new"});
  CHECK(merge({"head", "...", "end"}, {"HEAD", "1", "2", "end"}) ==
        Lines{"HEAD", "...", "end"});
}

TEST_CASE("a difference shows both lines and two around them", "[lessons]") {
  CHECK(difference({"a", "b", "c", "d", "e"}, {"a", "b", "c", "D", "e"}) ==
        "  b\n  c\n- d\n+ D\n  e\n");
}

TEST_CASE("dead links are told from live ones", "[lessons]") {
  const tests::Scratch scratch;
  write(scratch, "other.md", "# What CSE *is*, in short\n");
  const std::string page = write(scratch, "page.md", "");
  const Lines lines = {"[a](other.md) [b](other.md#what-cse-is-in-short)",
                       "[c](https://x.y/z)",
                       "[d](none.md)",
                       "[e](other.md#nothing)",
                       "```",
                       "[f](none.md)",
                       "```",
                       "`tiny_compile/none/gone.cpp`",
                       "<img src=\"none.svg\">"};
  const std::vector<std::string> dead = dead_links(page, lines);
  REQUIRE(dead.size() == 4);
  CHECK_THAT(dead[0], ContainsSubstring(":3:") && ContainsSubstring("none.md"));
  CHECK_THAT(dead[1], ContainsSubstring(":4:"));
  CHECK_THAT(dead[2], EndsWith("gone.cpp"));
  CHECK_THAT(dead[3], ContainsSubstring("none.svg"));
}

TEST_CASE("a record becomes a dated table", "[lessons]") {
  const std::string json = R"({"date": "2026-01-02", "device": "X", "commit": "abc",
    "rows": [{"row": "a", "n": 1, "ours": {"ms": 0.50}}, {"row": "b"}, {"row": "a", "n": 2, "ours": {"ms": 1e-3}}]})";
  CHECK(render_record(json, "r.json#a n, ours.ms") ==
        "Measured on 2026-01-02 on X, commit abc:\n\n| n | ours.ms |\n|---|---|\n| 1 | 0.50 |\n"
        "| 2 | 1e-3 |\n\n");
  CHECK_THROWS_WITH(render_record(json, "r.json#c n"), ContainsSubstring("no row 'c'"));
  CHECK_THROWS_WITH(render_record(json, "r.json#b n"), ContainsSubstring("no field 'n'"));
}
