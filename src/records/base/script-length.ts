/** The longest script that is run, in characters, as at the hosted service. */
export const MAX_SCRIPT_LENGTH = 102_400;
