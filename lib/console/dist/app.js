import{Y as m,b as o,gb as p,ia as i,z as r}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
