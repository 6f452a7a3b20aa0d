# The web application: it logs users in and out.
require 'dotenv/load'
# The certificate authority of Gatehouse on this machine. In production its certificate is one that everybody trusts.
ENV['SSL_CERT_FILE'] ||= 'data/tls/ca.pem'

require 'cgi'
require 'omniauth-auth0'
require 'sinatra'
require 'uri'

HOME = "http://localhost:#{ENV.fetch('PORT')}".freeze

set :bind, 'localhost'
set :port, ENV.fetch('PORT')
enable :sessions
set :session_secret, ENV.fetch('SESSION_SECRET') * 2

use OmniAuth::Builder do
  provider :auth0, ENV.fetch('AUTH0_CLIENT_ID'), ENV.fetch('AUTH0_CLIENT_SECRET'), ENV.fetch('AUTH0_DOMAIN'),
           callback_path: '/auth/auth0/callback',
           authorize_params: { scope: 'openid profile email' }
end

get '/' do
  email = session[:email]
  page(email ? logged_in(email) : logged_out)
end

get '/auth/auth0/callback' do
  session[:email] = request.env['omniauth.auth'].info.email
  redirect '/'
end

get '/auth/failure' do
  halt 400, page('<p role="alert">The login failed.</p>')
end

get '/logout' do
  session.clear
  query = URI.encode_www_form(client_id: ENV.fetch('AUTH0_CLIENT_ID'), returnTo: HOME)
  redirect "https://#{ENV.fetch('AUTH0_DOMAIN')}/v2/logout?#{query}"
end

def logged_in(email)
  "<p>You are logged in as #{CGI.escapeHTML(email)}.</p><a class=\"button\" href=\"/logout\">Log out</a>"
end

# OmniAuth starts a login only by POST, with a token against forgery.
def logged_out
  token = Rack::Protection::AuthenticityToken.token(session)
  <<~HTML
    <form method="post" action="/auth/auth0">
      <input type="hidden" name="authenticity_token" value="#{token}">
      <button>Log in</button>
    </form>
  HTML
end

def page(content)
  <<~HTML
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Ruby example</title>
    <link rel="stylesheet" href="/style.css">
    <main><h1>Ruby example</h1>#{content}</main>
    </html>
  HTML
end
