// "Try login": authorization code with PKCE (RFC 7636), as a single-page application does it.
(() => {
  const encode = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replace(/[+]/g, '-')
      .replace(/[/]/g, '_')
      .replace(/=+$/, '');
  const random = () => encode(crypto.getRandomValues(new Uint8Array(32)));
  const decode = (part) =>
    JSON.parse(
      new TextDecoder().decode(
        Uint8Array.from(atob(part.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0)),
      ),
    );
  const decodeToken = (token) => {
    const parts = token.split('.');
    return parts.length === 3 ? { header: decode(parts[0]), payload: decode(parts[1]) } : { opaque: token };
  };

  const button = document.getElementById('try-login');
  button?.addEventListener('click', async () => {
    const { clientId, callback } = button.dataset;
    const kept = { verifier: random(), state: random(), nonce: random() };
    sessionStorage.setItem('try-login', JSON.stringify(kept));
    const challenge = encode(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(kept.verifier)));
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: callback,
      response_type: 'code',
      scope: 'openid profile email offline_access',
      prompt: 'login',
      state: kept.state,
      nonce: kept.nonce,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    location.assign(`/authorize?${query}`);
  });

  const result = document.getElementById('result');
  const show = (title, value, index) => {
    const part = document.getElementById('part').content.cloneNode(true);
    const heading = part.querySelector('h2');
    heading.textContent = title;
    heading.id = `part-${index}`;
    part.querySelector('section').setAttribute('aria-labelledby', heading.id);
    part.querySelector('pre').textContent = JSON.stringify(value, null, 2);
    document.getElementById('parts').append(part);
  };
  const exchange = async () => {
    const response = new URLSearchParams(location.search);
    const kept = JSON.parse(sessionStorage.getItem('try-login') ?? '{}');
    sessionStorage.removeItem('try-login');
    history.replaceState(null, '', location.pathname);
    if (response.has('error'))
      throw new Error(`${response.get('error')}: ${response.get('error_description')}`);
    if (!response.has('code') || response.get('state') !== kept.state)
      throw new Error('There is no login to show here.');
    const answer = await fetch('/oauth/token', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        grant_type: 'authorization_code',
        client_id: result.dataset.clientId,
        code: response.get('code'),
        redirect_uri: result.dataset.callback,
        code_verifier: kept.verifier,
      }),
    });
    const tokens = await answer.json();
    if (!answer.ok) throw new Error(`${tokens.error}: ${tokens.error_description}`);
    const profile = await fetch('/userinfo', { headers: { authorization: `Bearer ${tokens.access_token}` } });
    const titles = document.getElementById('parts').dataset.titles.split('|');
    show(titles[0], decodeToken(tokens.id_token), 0);
    show(titles[1], decodeToken(tokens.access_token), 1);
    show(titles[2], await profile.json(), 2);
    show(titles[3], tokens, 3);
  };
  if (result) {
    exchange().catch((error) => {
      result.textContent = error.message;
      result.className = 'fault';
    });
  }
})();
