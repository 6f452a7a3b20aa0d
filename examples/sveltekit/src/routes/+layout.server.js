import { auth0 } from '#lib/server/auth0.js';

/** Gives the pages what they show of the user. */
export async function load(event) {
  const user = await auth0.getUser(event);
  return { email: user?.email };
}
