import { redirect } from '@sveltejs/kit';
import { api, auth0 } from '#lib/server/auth0.js';

/** Calls the API with the user's access token, which stays on the server. */
export async function load(event) {
  if ((await auth0.getUser(event)) === undefined) redirect(302, '/login');
  const { accessToken } = await auth0.getAccessToken(event);
  const response = await fetch(`${api}/api/messages`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  return { answer: response.ok ? (await response.json()).message : `The API answered ${response.status}` };
}
