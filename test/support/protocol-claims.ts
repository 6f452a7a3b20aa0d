// Names that no claim of a tenant's own may have: those of the protocol, and what may be read as one of them.

/** As they are. */
const OF_THE_PROTOCOL =
  `sub iss aud exp nbf iat jti nonce azp auth_time acr amr act may_act at_hash c_hash s_hash sid scope scp
  client_id cnf typ events gty permissions org_id org_name authorization_details updated_at jwk x5t#S256 vot __proto__
  constructor`
    .split(/\s+/)
    .filter(Boolean);

/** As readers take them that know no capitals, also of an `i` without its dot, spaces, widths, or characters that show nothing. */
const LOOK_ALIKES = [
  ...['Sub', 'SCOPE', 'Org_Id', 'X5T#S256', '__PROTO__'],
  ...['sub ', ' aud', '\tiss', 's ub', 'acr\n', 'amr\u00a0'],
  ...['\uff53ub', 'permi\u017f\u017fions', 's\u200bub', '\u202eaud', 'sid\u00ad', 'cnf\ufe0f'],
  ...['\u0131ss', '\u0130ss', 'i\u0307at', 'su\u2800b'],
];

export const PROTOCOL_CLAIMS = [...OF_THE_PROTOCOL, ...LOOK_ALIKES];
