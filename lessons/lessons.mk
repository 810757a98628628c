# The course. The reader's commands (NN: a lesson, NN-K: its exercise K; NN alone is NN-1):
#
#   make lesson-05               builds the lesson and runs it
#   make lesson-05 WITH=mine     the same, with your answer in the compiler's place (lesson-05-2: of
#                                exercise 2; WITH=solution works too)
#   make ex-05-2                 copies the start to mine.cpp, then checks your answer
#   make hint-05-2               the next of three hints
#   make diff-05-2               yours against the solution, once yours passes
#   make progress                what is solved
#   make small STEP=03           builds the small compiler up to a step, and runs it
#   make small WITH=my_fuse.h    the same with your step in the place of its own, before and after
#
# The course's own:
#   make lessons                 rewrites the quoted code, output and records in the pages
#   make check-lessons           fails where these have drifted; part of make test
#   make pictures                draws lessons/pictures again; make check-pictures, part of make
#                                test, fails where one has drifted
#   make check-exercises         every start fails, every solution passes, every wrong answer
#                                fails in the case that it names
LESSONS := $(sort $(wildcard lessons/[0-9][0-9]_*))
LESSON_PAGES := CONTRIBUTING.md lessons/README.md lessons/GLOSSARY.md lessons/TRIALS.md lessons/pictures/README.md \
  $(wildcard $(addsuffix /README.md,$(LESSONS)))
EXERCISES := $(sort $(wildcard lessons/[0-9][0-9]_*/exercise_*))
HERE := $(BUILD)/lessons
number = $(firstword $(subst _, ,$(notdir $(1))))
# lessons/05_cse_dce/exercise_2 => 05-2, and back; 05 alone is 05-1.
exercise_name = $(call number,$(patsubst %/,%,$(dir $(1))))-$(patsubst exercise_%,%,$(notdir $(1)))
full_name = $(if $(findstring -,$(1)),$(1),$(1)-1)
exercise_path = $(or $(wildcard lessons/$(word 1,$(subst -, ,$(1)))_*/exercise_$(word 2,$(subst -, ,$(1)))),lessons/exercise-$(1))

.PHONY: pictures check-pictures lessons check-lessons check-exercises progress

# Tools -----------------------------------------------------------------------------------------
TOOL_PARTS := $(call objects,$(addprefix lessons/tools/,blocks.cpp links.cpp quote.cpp record.cpp) \
  tiny_compile/cli/json.cpp)
RUN_PARTS := $(call objects,tiny_compile/base/error.cpp tiny_compile/runtime/process.cpp)
CHECK_PARTS := $(call objects,lessons/tools/check_main.cpp lessons/tools/check.cpp \
  tests/fuzz/outline.cpp tests/fuzz/random_graph.cpp) $(CLI_OBJECTS)

$(HERE)/sync: $(call objects,lessons/tools/sync.cpp) $(TOOL_PARTS) $(RUN_PARTS)
	@mkdir -p $(@D)
	$(LINK) $^ $(LIBS) -o $@
$(HERE)/exercise: $(call objects,lessons/tools/exercise.cpp lessons/tools/blocks.cpp) $(RUN_PARTS)
	@mkdir -p $(@D)
	$(LINK) $^ $(LIBS) -o $@
$(HERE)/libcheck.a: $(CHECK_PARTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(call SHOW,ar,$@)ar rcs $@ $^

$(HERE)/check_fixture: $(call objects,lessons/tools/check_fixture.cpp) $(HERE)/libcheck.a $(ARCHIVE)
	$(LINK) $^ $(CATCH_LIBS) $(LIBS) -o $@

WITH_CATCH := $(call objects,$(addprefix lessons/tools/,check_main.cpp check.cpp check_fixture.cpp))
$(WITH_CATCH): EXTRA = -O1 $(CATCH_FLAGS)
$(WITH_CATCH): | $(BUILD)/catch2
$(BUILD)/tests: $(TOOL_PARTS)
test: $(HERE)/exercise $(HERE)/check_fixture

# Programs of the lessons -----------------------------------------------------------------------
# $(1): the lesson's directory
define LESSON
$(HERE)/$(call number,$(1)): $(call objects,$(1)/lesson.cpp) $(ARCHIVE)
	@mkdir -p $$(@D)
	$$(LINK) $$^ $$(LIBS) -o $$@
endef
LESSON_PROGRAMS := $(foreach l,$(LESSONS),$(if $(wildcard $(l)/lesson.cpp),$(HERE)/$(call number,$(l))))
$(foreach l,$(LESSONS),$(eval $(call LESSON,$(l))))

lesson-%: FORCE $(HERE)/exercise
ifdef WITH
	@grep -q with_mine $(call exercise_path,$(call full_name,$*))/exercise.h || \
	  { echo 'exercise $(call full_name,$*) replaces no stage of the lesson'; exit 1; }
	@test -e $(call exercise_path,$(call full_name,$*))/$(WITH).cpp || \
	  { echo 'there is no $(WITH).cpp yet; make ex-$* starts one'; exit 1; }
	@+$(MAKE) -s --no-print-directory $(HERE)/$(call full_name,$*)/lesson-$(WITH)
	@$(HERE)/exercise guard $(HERE)/$(call full_name,$*)/lesson-$(WITH)
else
	@+$(MAKE) -s --no-print-directory $(HERE)/$*
	@$(HERE)/$*
endif

# The small compiler ----------------------------------------------------------------------------
SMALL_STEPS := $(sort $(patsubst lessons/small/%,%,$(filter-out lessons/small/00_%,$(wildcard lessons/small/[0-9]*.h))))
STEP ?= $(firstword $(subst _, ,$(lastword $(SMALL_STEPS))))
BUILD_SMALL = $(CXX) $(FLAGS) $(1) $(INCLUDES) $(CXXFLAGS) $(LDFLAGS) -DSTEP=$(patsubst 0%,%,$(STEP)) \
  -DLAST_STEP='"$(lastword $(sort $(wildcard lessons/small/$(STEP)_*.h)))"'
$(HERE)/small_$(STEP): lessons/small/small.cpp $(wildcard lessons/small/*.h) $(BUILD)/flags $(ARCHIVE)
	@test -e "$(firstword $(wildcard lessons/small/$(STEP)_*.h))" || \
	  { echo 'small: there is no step $(STEP); there are $(SMALL_STEPS)'; exit 1; }
	@mkdir -p $(@D)
	$(call SHOW,c++,$<)$(call BUILD_SMALL,) $< $(ARCHIVE) $(LIBS) -o $@
.PHONY: small
ifdef WITH
# The reader's file takes the place of the step that includes the same step before it.
WITH_BEFORE := $(shell grep -m1 '^.include "lessons/small/' $(WITH))
WITH_STEP := $(firstword $(if $(WITH_BEFORE),$(shell grep -lxF '$(WITH_BEFORE)' $(sort $(wildcard lessons/small/[0-9]*.h)))))
small: $(HERE)/small_$(STEP)
	@test -n '$(WITH_STEP)' || { echo 'small: $(WITH) is no step: it includes none'; exit 1; }
	@rm -rf $(HERE)/with && mkdir -p $(HERE)/with/lessons && cp -r lessons/small $(HERE)/with/lessons
	@cp $(WITH) $(HERE)/with/$(WITH_STEP)
	$(call SHOW,c++,$(WITH) for $(WITH_STEP))$(call BUILD_SMALL,-I$(HERE)/with) -Wno-error \
	  $(HERE)/with/lessons/small/small.cpp $(ARCHIVE) $(LIBS) -o $(HERE)/small_with
	@cd $(HERE) && for each in small_$(STEP) small_with; do \
	  OMP_WAIT_POLICY=passive ./$$each report >$$each.txt 2>$$each.said; echo $$? >>$$each.txt; done
	@diff -U1 --label before --label after $(HERE)/small_$(STEP).txt $(HERE)/small_with.txt || true
	@sed 's/^/before: /' $(HERE)/small_$(STEP).said; sed 's/^/after:  /' $(HERE)/small_with.said
else
small: $(HERE)/small_$(STEP)
	@OMP_WAIT_POLICY=passive $<
endif

# Exercises -------------------------------------------------------------------------------------
# $(1): the exercise's directory, $(2): its name
define EXERCISE
VARIANTS_$(2) := $(filter-out check mine,$(basename $(notdir $(wildcard $(1)/*.cpp))))
PROOFS += $$(patsubst %,$(HERE)/$(2)/%.proved,$$(VARIANTS_$(2))) $(HERE)/$(2)/form.proved

$(patsubst %,$(HERE)/$(2)/%,$(filter-out check mine,$(basename $(notdir $(wildcard $(1)/*.cpp)))) mine): \
  $(HERE)/$(2)/%: $(BUILD)/obj/$(1)/%.o $(call objects,$(1)/check.cpp) $(HERE)/libcheck.a $(ARCHIVE)
	@mkdir -p $$(@D)
	$$(LINK) $$^ $$(CATCH_LIBS) $$(LIBS) -o $$@

$(call objects,$(1)/check.cpp): EXTRA = -O1 $$(CATCH_FLAGS)
$(call objects,$(1)/check.cpp): | $(BUILD)/catch2
$(call objects,$(1)/mine.cpp): EXTRA = -O1 -Wno-error -Wno-unused
$$(patsubst %,$(BUILD)/obj/$(1)/%.o,$$(VARIANTS_$(2))): EXTRA = -O1 -Wno-unused

$(HERE)/$(2)/%.proved: $(HERE)/$(2)/% $(HERE)/exercise
	@$(HERE)/exercise prove $$< $(1)/$$*.cpp
	@touch $$@
$(HERE)/$(2)/form.proved: $(HERE)/exercise $(wildcard $(1)/*.cpp $(1)/*.h $(1)/*.md)
	@mkdir -p $$(@D)
	@$(HERE)/exercise form $(1)
	@touch $$@

# The lesson with a stage of the reader's.
$(HERE)/$(2)/lesson.o: $(wildcard $(dir $(1))lesson.cpp) $(1)/exercise.h $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(COMPILE)
$(HERE)/$(2)/lesson.o: EXTRA = -DTC_WITH='"$(1)/exercise.h"'
$(HERE)/$(2)/lesson-%: $(HERE)/$(2)/lesson.o $(BUILD)/obj/$(1)/%.o $(ARCHIVE)
	$$(LINK) $$^ $$(LIBS) -o $$@
endef
$(foreach e,$(EXERCISES),$(eval $(call EXERCISE,$(e),$(call exercise_name,$(e)))))
.SECONDARY:
-include $(wildcard $(HERE)/*/lesson.d)

ex-%: FORCE $(HERE)/exercise
	@$(HERE)/exercise start $(call exercise_path,$(call full_name,$*))
	@+$(MAKE) -s --no-print-directory $(HERE)/$(call full_name,$*)/mine || \
	  { echo; echo 'Your answer does not compile yet: begin with the first error above.'; exit 1; }
	@$(HERE)/$(call full_name,$*)/mine

hint-%: FORCE $(HERE)/exercise
	@$(HERE)/exercise hint $(call exercise_path,$(call full_name,$*)) $(HERE)/$(call full_name,$*)/hints

diff-%: FORCE $(HERE)/exercise
	@test -e $(call exercise_path,$(call full_name,$*))/mine.cpp || \
	  { echo 'nothing of yours yet; make ex-$* starts it'; exit 1; }
	@+$(MAKE) -s --no-print-directory $(HERE)/$(call full_name,$*)/mine
	@$(HERE)/$(call full_name,$*)/mine >/dev/null || \
	  { echo 'The solution is shown once yours passes: make ex-$*, make hint-$*'; exit 1; }
	@$(HERE)/exercise diff $(call exercise_path,$(call full_name,$*))

progress: $(HERE)/exercise
	@+$(MAKE) -s -k --no-print-directory $(foreach e,$(EXERCISES),$(if $(wildcard $(e)/mine.cpp),\
	  $(HERE)/$(call exercise_name,$(e))/mine)) $(HERE)/exercise >/dev/null 2>&1 || true
	@$(HERE)/exercise progress $(foreach e,$(EXERCISES),$(e)=$(HERE)/$(call exercise_name,$(e))/mine)

check-exercises: $(PROOFS)
	@echo '$(words $(EXERCISES)) exercises, $(words $(PROOFS)) proofs'

# Pages -----------------------------------------------------------------------------------------
lessons: $(HERE)/sync $(LESSON_PROGRAMS) $(PROGRAMS)
	@$(HERE)/sync README.md tiny_compile/README.md $(LESSON_PAGES)
check-lessons: $(HERE)/sync $(LESSON_PROGRAMS) $(PROGRAMS)
	@$(HERE)/sync --check README.md tiny_compile/README.md $(LESSON_PAGES)
pictures: $(BUILD)/tc
	@lessons/tools/pictures.sh $(BUILD)/tc
check-pictures: $(BUILD)/tc
	@lessons/tools/pictures.sh --check $(BUILD)/tc
ifeq ($(ONLY)$(SANITIZE),)  # the pages name programs in build/
test: check-lessons check-pictures
endif
