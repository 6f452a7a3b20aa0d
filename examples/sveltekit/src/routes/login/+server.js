import { redirect } from '@sveltejs/kit';
import { auth0, gatehouse } from '#lib/server/auth0.js';

export async function GET(event) {
  const url = await auth0.startInteractiveLogin({}, event);
  redirect(302, url, { external: [gatehouse] });
}
