// How the Management API is called as an API of the tenant; apart from the API, for commands that load none of it.

/** The identifier of the Management API. @param issuer with its slash at the end. */
export const managementAudience = (issuer: string): string => `${issuer}api/v2/`;
