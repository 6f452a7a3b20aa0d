// The identifier of the Management API, in a file of its own so that commands can import it without loading the API.

/** @param issuer with its slash at the end. */
export const managementAudience = (issuer: string): string => `${issuer}api/v2/`;
