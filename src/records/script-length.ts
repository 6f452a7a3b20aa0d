/** As long as the text of a script may be that is run, as of the hosted service. Characters. */
export const LONGEST_SCRIPT = 102_400;
