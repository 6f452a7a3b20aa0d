// The identifier of the My Account API.

/** Returns the identifier of the My Account API. @param issuer with a trailing slash. */
export const accountAudience = (issuer: string): string => `${issuer}me/`;
