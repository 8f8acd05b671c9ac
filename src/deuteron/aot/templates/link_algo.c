/* ${name}, algo_id ${algo_id}: ${description}. The first kernel whose hints hold and whose device is there. */
${launch} {
  deuteron_status deuteron_result = ${otherwise};
${dispatch}
  return deuteron_result;
}
