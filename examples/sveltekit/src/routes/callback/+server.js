import { redirect } from '@sveltejs/kit';
import { auth0 } from '#lib/server/auth0.js';

export async function GET(event) {
  await auth0.completeInteractiveLogin(event.url, event);
  redirect(302, '/');
}
