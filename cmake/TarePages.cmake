# Manual pages and completion scripts: the program writes them from its option rows (cli/man.c, cli/completion/completion.c).
set(TARE_PAGES ${PROJECT_BINARY_DIR}/pages)
set(commands COMMAND ${CMAKE_COMMAND} -E rm -rf ${TARE_PAGES}
             COMMAND tare man --output-dir ${TARE_PAGES}/man
             COMMAND sh -c "gzip -9n ${TARE_PAGES}/man/*.1")
foreach(row bash:tare zsh:_tare fish:tare.fish)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 shell)
  list(GET row 1 file)
  list(APPEND commands COMMAND ${CMAKE_COMMAND} -E make_directory ${TARE_PAGES}/${shell}
                       COMMAND sh -c "\"$@\" completion ${shell} >${TARE_PAGES}/${shell}/${file}" sh ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:tare>)
endforeach()
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/pages.stamp ${commands}
                   COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/pages.stamp
                   DEPENDS tare COMMENT "Manual pages and completions" VERBATIM)
add_custom_target(pages ALL DEPENDS ${PROJECT_BINARY_DIR}/pages.stamp)
install(DIRECTORY ${TARE_PAGES}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tare)
install(DIRECTORY ${TARE_PAGES}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tare)
install(DIRECTORY ${TARE_PAGES}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tare)
install(DIRECTORY ${TARE_PAGES}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tare)
