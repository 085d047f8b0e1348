# tare_embed(TARGET FILE NAME): makes the text file FILE (page.css) a string constant NAME in the generated header
# FILE with "_" for "." (page_css.h), which the sources of TARGET include. Run as a script it writes that header.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(TARE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(tare_embed target file name)
    get_filename_component(base ${file} NAME)
    string(REPLACE "." "_" header ${base})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${header}.h)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -D OUTPUT=${output} -D NAME=${name}
              -P ${TARE_EMBED_SCRIPT}
      DEPENDS ${file} ${TARE_EMBED_SCRIPT} VERBATIM)
    target_sources(${target} PRIVATE ${output})
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  endfunction()
  return()
endif()
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
if(NOT INPUT MATCHES "\\.py$") # indentation has no meaning
  string(REGEX REPLACE "\n +" "\n" text "${text}")
endif()
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "static const char ${NAME}[] =\n    \"${text}\";\n")
