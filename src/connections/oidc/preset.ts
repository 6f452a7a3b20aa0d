// In what the strategies of OpenID providers differ; all else is one core.
import type { JWTPayload } from 'jose';
import type { StrategyName } from '../../records/connections.ts';
import type { OpenIdOptions } from '../../records/openid.ts';
import type { RedirectStrategy, UpstreamDependencies } from '../redirect.ts';
import type { Claims } from './id-token.ts';
import type { Metadata } from './metadata.ts';

/** What a provider said of somebody. */
export interface ProviderResponse {
  claims: Claims;
  /** Of the userinfo endpoint, where that was asked. */
  userInfo: Readonly<Record<string, unknown>>;
  /** The parameters of the answer, which nobody has proved. */
  parameters: Readonly<Record<string, string>>;
}

/** A strategy as data over the core. */
export interface Preset<Options extends OpenIdOptions> {
  name: StrategyName;
  /** What people know the provider by; connections of others have names of their own. */
  label?: string;
  isSocial: boolean;
  idsWithin: RedirectStrategy['idsWithin'];
  /** Checks and reads a connection's options. */
  parse(options: unknown): Options;
  type: 'back_channel' | 'front_channel';
  /** The scopes of a connection that says none. */
  scope: string;
  /** Scopes by the option, a boolean, that asks for them; false leaves one of `scope` out. */
  scopes?: Readonly<Record<string, string>>;
  /** Scopes that what a connection asks {@link further} for takes. */
  furtherScopes?(options: Options): string[];
  /** What the provider says of the user elsewhere, which comes before what its ID token says. @throws AuthError by `upstreamFault`. */
  further?(
    deps: UpstreamDependencies,
    connection: { options: Options; metadata: Metadata },
    accessToken: string,
  ): Promise<Record<string, unknown>>;
  /**
   * The issuer, or the address of the discovery document, where the options do not say it; undefined for none.
   * @throws AuthError by `upstreamFault` for a connection of another protocol.
   */
  discovery(options: Options): string | undefined;
  /** Whether the issuer of a discovery document is that of the provider; by default it is where the document is. */
  isDocumentOf?(issuer: string, address: string): boolean;
  /** Whether an ID token's issuer is the provider; by default the one of the document. */
  isIssuer?(issuer: string, claims: JWTPayload, options: Options, metadata: Metadata): boolean;
  /** `form_post` where the provider insists on it. */
  responseMode?: 'form_post';
  /** Further parameters of the authorization request, which nobody can change. */
  parameters?(options: Options): Record<string, string>;
  /** The client secret, where it is made for each request. */
  secretOf?(deps: UpstreamDependencies, options: Options, metadata: Metadata): Promise<string>;
  /** Who may log in, beside whom the ID token is of. @throws AuthError by `upstreamFault` for others. */
  admit?(claims: Claims, options: Options): void;
  /** What the provider calls the user; `sub` by default. @throws AuthError by `upstreamFault` where it does not. */
  idOf?(claims: Claims, options: Options): string;
  /** The user's profile, of the one that all providers have. */
  profile?(
    profile: Record<string, unknown>,
    said: ProviderResponse,
    options: Options,
  ): Record<string, unknown>;
}
