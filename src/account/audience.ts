// How the My Account API is called as an API of the tenant.

/** The identifier of the My Account API. @param issuer with its slash at the end. */
export const accountAudience = (issuer: string): string => `${issuer}me/`;
