import { redirect } from '@sveltejs/kit';
import { auth0, gatehouse, origin } from '#lib/server/auth0.js';

export async function GET(event) {
  const url = await auth0.logout({ returnTo: origin }, event);
  redirect(302, url, { external: [gatehouse] });
}
