/** The longest script that is run, in characters, as at the hosted service. */
export const LONGEST_SCRIPT = 102_400;
