// OpenID Connect Session Management 1.0, for tenants with `flags.session_management`: applications frame a page
// that tells them whether the session at this browser has changed since their response. The page identifies the
// browser's state by a cookie that its script reads; scripts cannot read the session's own cookie.
// docs/understand/decisions/sessions-logout.md#session-management-is-off-by-default
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { cspHash } from '../../http/server/application.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';

/** The page (§3.3). */
export const CHECK_SESSION = '/check_session';

const COOKIE = '__Secure-gatehouse_state';
/** Not `HttpOnly`, because the script of the page reads it; sent to that page only. */
const ATTRIBUTES = `Path=${CHECK_SESSION}; Secure; SameSite=None`;

export function hasSessionManagement(config: Pick<Config, 'settings'>): boolean {
  return config.settings().tenant.flags.session_management === true;
}

/**
 * Adds `session_state` to the responses of OpenID Connect requests, and sets the cookie of the browser's state
 * (§2).
 */
export function addSessionState(
  provider: Provider,
  { config, random }: { config: Config; random: Random },
): void {
  provider.on('authorization.success', (ctx, response) => {
    const { session, client, params, requestParamScopes } = ctx.oidc;
    const { origin = 'null' } = URL.parse(String(params?.redirect_uri)) ?? {};
    if (response === undefined || session === undefined || client === undefined) return;
    if (!hasSessionManagement(config) || !requestParamScopes.has('openid') || origin === 'null') return;
    const state = stateOf(session.jti);
    const salt = random(16).toString('base64url');
    appendCookie(ctx, `${COOKIE}=${state}; ${ATTRIBUTES}`);
    response.session_state = `${sha256(`${client.clientId} ${origin} ${state} ${salt}`)}.${salt}`;
  });
}

/**
 * Returns the browser's state of a session, made from the session cookie's value. It is not made from the `sid`,
 * which applications know: with it a site of any origin could compute what the page compares, and recognise the
 * user's browser.
 */
function stateOf(cookie: string): string {
  return sha256(`browser state ${cookie}`);
}

/** Removes the cookie of the browser's state when the session has ended. */
export function forgetState(ctx: Context): void {
  ctx.append('Set-Cookie', `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`);
}

function appendCookie(ctx: KoaContextWithOIDC, cookie: string): void {
  ctx.append('Set-Cookie', cookie);
}

/**
 * The page's script: it answers `<client_id> <session_state>` (§3.2, §3.3). The message may come from a frame
 * beside this one, as in the standard's example. Its origin is part of what is compared, so that a page learns
 * nothing about another application.
 */
const SCRIPT = `(function(){
function state(){var all=document.cookie.split('; ');for(var i=0;i<all.length;i++)if(all[i].indexOf('${COOKIE}=')===0)return all[i].slice(${COOKIE.length + 1});return '';}
function base64url(bytes){return btoa(String.fromCharCode.apply(null,new Uint8Array(bytes))).replace(/\\+/g,'-').replace(/\\//g,'_').replace(/=+$/,'');}
addEventListener('message',function(event){
if(typeof event.data!=='string'||!event.source||event.origin==='null')return;
function answer(text){event.source.postMessage(text,event.origin);}
var parts=event.data.split(' ');
var given=parts.pop().split('.');
var client=parts.join(' ');
if(client===''||given.length!==2||given[0]===''||given[1]==='')return answer('error');
var text=client+' '+event.origin+' '+state()+' '+given[1];
crypto.subtle.digest('SHA-256',new TextEncoder().encode(text)).then(function(hash){answer(base64url(hash)===given[0]?'unchanged':'changed');},function(){answer('error');});
});
})();`;

/**
 * Answers with the page. Any application may frame it, because it shows nothing and only compares.
 * @throws AuthError 404 when the tenant has no session management.
 */
export function sendCheckSession(config: Pick<Config, 'settings'>, ctx: Context): void {
  if (!hasSessionManagement(config)) throw new AuthError(404, 'not_found', 'There is no such page.');
  ctx.type = 'html';
  ctx.remove('X-Frame-Options');
  ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
  ctx.set('Cache-Control', 'no-store');
  ctx.set(
    'Content-Security-Policy',
    `default-src 'none'; script-src ${cspHash(SCRIPT)}; frame-ancestors https: http://localhost:* http://127.0.0.1:*; base-uri 'none'; form-action 'none'`,
  );
  ctx.body = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Session</title></head><body><script>${SCRIPT}</script></body></html>`;
}
